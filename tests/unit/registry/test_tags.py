"""The names of tags are spelled in one module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import trainlib
from trainlib._registry import tags

ROOT = Path(trainlib.__file__).parent
TAGS = [value for name, value in vars(tags).items() if name.isupper() and isinstance(value, str)]


def sources() -> list[Path]:
    folders = (ROOT, ROOT / "flows", ROOT / "tasks")  # the last two are links, which rglob does not follow
    return [path for folder in folders for path in folder.rglob("*.py") if path != Path(tags.__file__)]


def texts(source: str) -> Iterator[str]:
    """All texts of a module except its docstrings."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_no_two_tags_have_one_name():
    assert len(set(TAGS)) == len(TAGS)


def test_numbered_tags_are_not_taken_for_others():
    assert tags.is_attempt(tags.attempt(1))
    assert [tag for tag in TAGS if tags.is_attempt(tag)] == ["trainlib.attempt."]
    assert not tags.TRIAL_POINT_PIECES.startswith(tags.trial_point_piece(0)[:-3])


def test_nobody_else_spells_a_tag():
    assert len(sources()) > 100
    spelled = {
        str(path.relative_to(ROOT)): text
        for path in sources()
        for text in texts(path.read_text())
        if any(tag in text for tag in TAGS)
    }
    assert spelled == {}
