"""Domains: topics that are found in the memories themselves."""
