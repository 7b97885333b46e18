"""One script for each measured side. ``python -m bench`` runs each in its own process."""
