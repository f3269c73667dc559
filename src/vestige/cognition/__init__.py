"""The thinking: pure functions over numbers and arrays. No IO, no clock, no randomness of their own."""
