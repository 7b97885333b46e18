"""Errors of Ray Data pipelines in one line. They are raised in another process, and wrapped several times."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ray.exceptions import RayTaskError

from trainlib._data.sources import inspect_source
from trainlib._execution.missing import advice, missing_module
from trainlib.errors import DataError

# The lines of a traceback that name an exception. The first cause comes first.
_RAISED = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Invalid|Warning)(?:\(\w+\))?: (.+)$", re.MULTILINE)
_COLORS = re.compile(r"\x1b\[\d*m")
_FILE = re.compile(r"Failed to read CSV file: (.+?)(?:: |$)")
_ADVICE = re.compile(r"\. Please check .*$")


@contextmanager
def readable_errors(what: str) -> Iterator[None]:
    """Turn an error of a pipeline that runs in the block into a DataError about ``what``."""
    try:
        yield
    except RayTaskError as error:  # errors of Ray itself, such as a lost node, stay as they are
        text = reason(str(error))
        if file := _FILE.search(text):
            text += reason_in_file(file[1])
        if (module := missing_module(str(error))) is not None:
            text += f". {advice(module, error.ip or 'of the cluster')}"
        raise DataError(f"{what} cannot be read or transformed: {text}") from None


def reason_in_file(path: str) -> str:
    """What is wrong in a file that Ray could not read. Ray names the file, but drops its reader's message about the row."""
    if not os.path.exists(path):
        return ""  # it is in a remote store, and Ray leaves out which
    try:
        inspect_source(path, whole=True)
    except DataError as error:
        return f": {error}"
    return ""


def reason(traceback: str) -> str:
    """The messages in a traceback, from the outermost error to its first cause.

    Example:
        >>> reason("Traceback:\\n  File x\\nKeyError: 'age'\\n\\nThe above was the cause:\\n\\nray.SomeError: no age")
        "no age: 'age'"
    """
    text = _COLORS.sub("", traceback)
    messages = [_ADVICE.sub("", line).strip() for line in _RAISED.findall(text)]
    messages = [line for line in messages if not line.startswith("ray::")]
    return ": ".join(dict.fromkeys(reversed(messages))) or (text.strip().splitlines() or [""])[-1]
