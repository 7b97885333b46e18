"""The size of the streamed data."""

from bench.scripts.rows import LARGE_BYTES
from bench.scripts.side import finish

finish(gigabytes=LARGE_BYTES / 1e9)
