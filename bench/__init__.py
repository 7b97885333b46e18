"""Side-by-side measurements of trainlib and what it is compared with: ``python -m bench``."""
