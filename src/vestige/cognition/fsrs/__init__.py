"""FSRS-6: how memories fade, and what strengthens them."""
