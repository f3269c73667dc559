"""Recall of sessions: is the session found that led to a commit, and how fast is the index?"""
