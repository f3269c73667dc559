"""A year of use under a virtual clock: what the living memory is good for, and what each mechanism adds."""
