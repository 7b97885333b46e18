"""Data: where it comes from, and what is done to it before a training."""
