"""What is worth keeping of a transcript, by rules."""
