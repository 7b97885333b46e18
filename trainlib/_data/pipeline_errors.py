"""What went wrong in a Ray Data pipeline, in one line: it was raised in another process, and wrapped several times."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ray.exceptions import RayTaskError

from trainlib._data.sources import inspect_source
from trainlib.errors import DataError

# The lines of a traceback that say what was raised. What caused what was caused is told there first.
_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Invalid|Warning)(?:\(\w+\))?: (.+)$", re.MULTILINE)
_COLORS = re.compile(r"\x1b\[\d*m")
_FILE = re.compile(r"Failed to read CSV file: (.+?)(?:: |$)")
_ADVICE = re.compile(r"\. Please check .*$")


@contextmanager
def readable_errors(what: str) -> Iterator[None]:
    """Turn what a pipeline raises in the block into a DataError about ``what``."""
    try:
        yield
    except RayTaskError as error:  # what Ray itself lost, e.g. a node, is another matter
        told = reason(str(error))
        if file := _FILE.search(told):
            told += reason_in_file(file[1])
        raise DataError(f"{what} cannot be read or transformed: {told}") from None


def reason_in_file(path: str) -> str:
    """What is wrong in a file that Ray could not read: Ray names it, but drops what its reader said of the row."""
    if not os.path.exists(path):
        return ""  # it is in another store, whose name Ray leaves out
    try:
        inspect_source(path, whole=True)
    except DataError as error:
        return f": {error}"
    return ""


def reason(traceback: str) -> str:
    """What was raised, from the outermost error to its first cause.

    Example:
        >>> reason("Traceback:\\n  File x\\nKeyError: 'age'\\n\\nThe above was the cause:\\n\\nray.SomeError: no age")
        "no age: 'age'"
    """
    text = _COLORS.sub("", traceback)
    told = [_ADVICE.sub("", line).strip() for line in _RAISED.findall(text)]
    told = [line for line in told if not line.startswith("ray::")]
    return ": ".join(dict.fromkeys(reversed(told))) or (text.strip().splitlines() or [""])[-1]
