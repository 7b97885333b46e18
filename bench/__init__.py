"""Measures trainlib side by side with others: ``python -m bench``."""
