"""Time: calendar, time expressions, validity."""
