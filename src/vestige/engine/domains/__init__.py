"""Domains: topics found in the memories, kept where people left them."""
