"""The read path. `recall.py` shows it: analyse, gather, rank, run the stages, answer, leave a trace."""
