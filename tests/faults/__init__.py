"""Faults while the program is used: what goes wrong around it, and what it is given that it cannot take."""
