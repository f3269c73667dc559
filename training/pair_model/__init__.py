"""The training of the pair model: pairs of notes in, a low-rank delta of all-MiniLM-L6-v2 out."""
