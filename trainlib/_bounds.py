"""The largest values that settings take. Larger ones mean nothing, and overflow in some library, long after they were typed in."""

from __future__ import annotations

__all__ = ["LARGEST_COUNT", "LARGEST_SEED", "LONGEST_DAYS", "LONGEST_S", "MOST_WORKERS"]

MOST_WORKERS = 100_000
LARGEST_COUNT = 2**31 - 1
"""Of retries, checkpoints, trials, rows of a batch."""
LARGEST_SEED = 2**32 - 1
"""What NumPy takes, and so whatever is built on it."""
LONGEST_S = 10**9
"""Some 30 years."""
LONGEST_DAYS = 36_500
