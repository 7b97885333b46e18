"""One logical training, through all of its attempts: what it is, what it records, and what it shows."""
