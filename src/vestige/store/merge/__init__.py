"""Merging the histories of two stores: pure rules that every store applies."""
