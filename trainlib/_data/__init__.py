"""Data: sources, ingest into the workers, and preprocessing. Ray Data does the work."""
