"""Digests of functions and values: equal in all processes, and different when something has changed."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from trainlib import ScalingConfig
from trainlib._digest import digest

HELPERS = """
    RATE = {rate}

    def scaled(x):
        return inner(x) * RATE

    def inner(x):
        return x + {added}
"""
MAIN = """
    {comment}
    import os, sys, logging
    from dataclasses import dataclass
    from pathlib import Path
    import helpers
    from helpers import scaled
    from trainlib import session
    from trainlib._digest import digest

    LAYERS = (1, {layers})
    log = logging.getLogger("x")

    @dataclass
    class Model:
        width: int = 2
        def forward(self, x):
            return {{1, 2, x, "a", "b"}} and x * {factor}

    def outer(width):
        def train_func(config):
            log.info("begin")
            model = Model(width)
            for layer in LAYERS:
                session.report({{"loss": model.forward(scaled(layer)) + helpers.inner(1), "pid": os.getpid()}})
        return train_func

    if __name__ == "__main__":
        print(digest(outer({width})))
"""
SAME = {"comment": "", "rate": 2, "added": 1, "layers": 2, "factor": 3, "width": 4}


# Several in one process, since each takes a second to start.
ALL = """
    import runpy, sys
    for folder in sys.argv[1:]:
        sys.modules.pop("helpers", None)
        sys.path[0] = folder
        runpy.run_path(folder + "/main.py", run_name="__main__")
"""


def write(folder: Path, **changes) -> str:
    values = {**SAME, **changes}
    folder.mkdir()
    (folder / "helpers.py").write_text(textwrap.dedent(HELPERS).format(**values))
    (folder / "main.py").write_text(textwrap.dedent(MAIN).format(**values))
    return str(folder)


def digests(*command: str) -> list[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True).stdout.split()


def test_a_function_has_the_same_digest_in_all_processes_until_its_code_changes(tmp_path):
    (first,) = digests(write(tmp_path / "first") + "/main.py")
    folders = [write(tmp_path / "comment", comment="# a line more")]
    folders += [write(tmp_path / name, **{name: 9}) for name in ("rate", "added", "layers", "factor", "width")]
    commented, *others = digests("-c", textwrap.dedent(ALL), *folders)
    assert commented == first
    assert len({first, *others}) == 6, "each change is seen"


def recursive(config):
    return recursive(config)


class Rated:
    def __init__(self, rate):
        self.rate = rate
        self.me = self

    def __call__(self, config):
        return self.rate


class Unreadable:
    __slots__ = ()

    def __repr__(self):
        raise ValueError("no")


@pytest.mark.parametrize(
    ("value", "same", "other"),
    [
        ({"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}, {"a": 1, "b": (1, 2)}),
        ({"x", "y", "z"}, {"z", "y", "x"}, {"x"}),
        (1, 1, True),
        (Path("a"), Path("a"), "a"),
        (ScalingConfig(num_workers=2), ScalingConfig(num_workers=2), ScalingConfig(num_workers=3)),
        (functools.partial(recursive, 1), functools.partial(recursive, 1), functools.partial(recursive, 2)),
        (Rated(1), Rated(1), Rated(2)),
        (recursive, recursive, len),
        (Unreadable(), Unreadable(), object()),
    ],
)
def test_values(value, same, other):
    assert digest(value) == digest(same) != digest(other)


def test_arrays_count_by_their_contents():
    import numpy as np

    assert digest(np.arange(2000)) == digest(np.arange(2000)) != digest(np.arange(2000) * (np.arange(2000) != 1000))
