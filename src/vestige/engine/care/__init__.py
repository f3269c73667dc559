"""Maintenance: backup, restore, doctor, rebuild, re-embedding, health, secret scan."""
