"""Is recall by hooks silent when it should be, and does it speak when it should?"""
