"""One script for each measured side. ``python -m bench`` runs each in a process of its own."""
