"""``docs/promises.md`` says which test shows what the guides promise. Those tests are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "promises.md").read_text()

_ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")


@cache
def functions_of(path: str) -> frozenset[str]:
    """The functions of a file of tests, which is read, but not imported."""
    file = TESTS / path
    if not file.exists():
        return frozenset()
    return frozenset(node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef))


def test_every_test_that_is_named_exists():
    missing = [f"{path}::{name}" for path, name in _TEST.findall(PAGE) if name not in functions_of(path)]
    assert missing == []


def test_every_promise_has_a_test():
    rows = _ROW.findall(PAGE)
    assert len(rows) > 120
    without = {promise for _, promise, shown in rows if not _TEST.search(shown)}
    assert without == set()


def test_all_five_guides_are_there():
    assert re.findall(r"^## Guide (\d+)", PAGE, re.MULTILINE) == ["000", "001", "002", "003", "004"]
