"""Arguments and views that several operations use."""
