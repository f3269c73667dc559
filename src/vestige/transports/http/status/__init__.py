"""What a server says about itself: health checks and metrics."""
