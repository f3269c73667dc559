"""Authentication: keys, cookies, login, failed logins, allowed hosts."""
