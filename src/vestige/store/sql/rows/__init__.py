"""The tables of a relational store, one module each."""
