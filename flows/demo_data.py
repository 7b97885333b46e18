"""The demonstration's data in a form: names that hold on whichever machine the flow runs."""

from __future__ import annotations

from typing import Literal

from trainlib.demo import digits_file
from trainlib.errors import DataNotFoundError

__all__ = ["DEMO_DATA", "located"]

DEMO_DATA: dict[str, Literal["train", "validation"] | None] = {
    "demo://digits": None,
    "demo://digits/train": "train",
    "demo://digits/validation": "validation",
}
"""The files of handwritten digits, and the part of the rows that each has. They are written where the flow runs."""


def located(path: str) -> str:
    """The path of a file that may be the demonstration's.

    Raises:
        DataNotFoundError: the demonstration has no such file.

    Example:
        >>> located("s3://bucket/people.csv")
        's3://bucket/people.csv'
    """
    if not path.startswith("demo://"):
        return path
    if path not in DEMO_DATA:
        raise DataNotFoundError(f"the demo has no {path}. It has {', '.join(DEMO_DATA)}.")
    return str(digits_file(DEMO_DATA[path]))
