"""Prediction: habits, forecast, importance."""
