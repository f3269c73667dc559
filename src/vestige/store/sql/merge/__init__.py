"""Histories read from and absorbed into a relational store."""
