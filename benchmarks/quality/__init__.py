"""How well is found what was asked for: public data through the shipped tools, beside plain baselines."""
