"""Rarer parts and models, off the reading path."""
