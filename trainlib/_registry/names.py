"""What metrics and params are called in MLflow, which does not accept every name."""

from __future__ import annotations

import hashlib
import re

__all__ = ["stored_name", "trial_id"]

_LONGEST = 250
_MARK = 8
_NOT_ALLOWED = re.compile(r"[^\w\-./: ]")
_AT = " at "


def stored_name(name: str) -> str:
    """The name of a metric or a param in MLflow. Two names are never stored as one.

    A name that MLflow accepts stays as it is. ``@`` is written as a word. Any other name is made to fit, and ends with a
    hash of what it was.

    Example:
        >>> stored_name("val/loss"), stored_name("recall@10"), stored_name("gain%")
        ('val/loss', 'recall at 10', 'gain_-79233440')
    """
    readable = name.replace("@", _AT)
    if _AT not in name and _is_accepted(readable):
        return readable
    mark = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_MARK]
    parts = [part for part in _NOT_ALLOWED.sub("_", readable).split("/") if part not in ("", ".", "..")]
    fitting = "/".join(parts).lstrip(".")
    return f"{fitting[: _LONGEST - _MARK - 1]}-{mark}"


def trial_id(run_id: str, number: int) -> str:
    """The short id of a trial, as Ray writes it; ``run_id`` is the run of its sweep, or of a training by itself.

    Example:
        >>> trial_id("4913f0c2", 0), trial_id("4913f0c2", 12)
        ('4913f_00000', '4913f_00012')
    """
    return f"{run_id[:5]}_{number:05d}"


def _is_accepted(name: str) -> bool:
    if len(name) > _LONGEST or name.startswith("..") or _NOT_ALLOWED.search(name):
        return False
    return not {"", ".", ".."} & set(name.split("/"))  # MLflow may treat a name as the path of a file
