"""Data: where it comes from, how it reaches the workers, and how it is prepared. Ray Data does the work."""
