"""Checks and repairs that every relational store shares."""
