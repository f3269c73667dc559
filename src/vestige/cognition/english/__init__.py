"""Rules about English: words, quantities, polarity, emotion."""
