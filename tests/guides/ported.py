"""How an example says which lines of it are the guide's, and the comparison with the guide.

An example is a script. Comments that begin with ``#:`` say where its lines come from:

``#: guide 000:30 001:299``
    What follows are these blocks of the guides (which have the same text), up to the next such comment. With ``before`` or ``after``, it
    is that side of a diff.
``#: ours: why``
    What follows is not in the guide: the context that its text promises, or what a test looks at. A part inside a block, or in a function
    of it, is an ``Insertion``.
``#: guide``
    The block goes on.
``#: instead of: line`` and ``#: because: why``
    The next line replaces this line of the guide, for this reason. This is for a guide's own mistakes, and for its placeholders.

Without such a note, a line differs from the guide's only if both are imports, the guide's one is of Ray, and both bind the same names to what
has these names. A note allows any other line, so ``edits`` and ``insertions`` give all of them, and a test lists those that there may be.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from tests.guides.guide_blocks import Block

_MARK = "#: "


@dataclass(frozen=True)
class Line:
    """A line of an example that is the guide's, but for its import or a noted edit."""

    text: str
    instead_of: str | None = None
    because: str | None = None


@dataclass(frozen=True)
class Edit:
    """A line of a guide that an example has replaced."""

    block: str
    guide: str
    example: str


@dataclass(frozen=True)
class Insertion:
    """Lines of our own inside a block of a guide, or in a function of it."""

    block: str
    code: str


@dataclass
class Region:
    """Lines of an example that are a block of the guides."""

    blocks: tuple[str, ...]
    side: str | None
    lines: list[Line] = field(default_factory=list)
    ours: list[list[str]] = field(default_factory=list)
    """What follows its lines, or stands between them, and is not the guide's."""
    resumed: list[int] = field(default_factory=list)
    """Which of ``ours`` stand between its lines."""


class MarkError(ValueError):
    """A comment with ``#:`` in an example makes no sense."""


def regions(example: Path) -> list[Region]:
    """The parts of an example that are the guides'."""
    found: list[Region] = []
    is_guides = False
    instead_of: str | None = None
    because: str | None = None
    for number, text in enumerate(example.read_text().splitlines(), start=1):
        mark, colon, rest = text.strip().removeprefix(_MARK).partition(": ")
        if not text.strip().startswith(_MARK):
            if is_guides:
                found[-1].lines.append(Line(text, instead_of, because))
                instead_of = because = None
            elif found:
                found[-1].ours[-1].append(text)
        elif mark == "ours" and rest:
            is_guides = False
            if found:
                found[-1].ours.append([])
        elif mark == "guide" and not colon and found and found[-1].ours:
            is_guides = True
            found[-1].resumed.append(len(found[-1].ours) - 1)
        elif mark.startswith("guide ") and not colon:
            *blocks, last = mark.split()[1:]
            side = last if last in ("before", "after") else None
            found.append(Region(tuple(blocks if side else [*blocks, last]), side))
            is_guides = True
        elif mark == "instead of" and rest and is_guides:
            instead_of = rest
        elif mark == "because" and rest and instead_of is not None:
            because = rest
        else:
            raise MarkError(f"{example.name}, line {number}: {text.strip()!r} is not a mark of an example")
    return found


def differences(region: Region, block: Block) -> list[str]:
    """Where a part of an example differs from the guide without saying so."""
    guides = _lines(block.side(region.side))
    examples = list(region.lines)
    while examples and not examples[0].text.strip():
        examples.pop(0)
    while examples and not examples[-1].text.strip():
        examples.pop()
    indented = textwrap.dedent("\n".join(line.text for line in examples)).split("\n") if examples else []
    if len(guides) != len(indented):
        return [f"{block.name} has {len(guides)} lines, and the example {len(indented)}"]
    pairs = zip(guides, indented, examples, strict=True)
    return [
        f"{block.name}: the guide has {guide!r}, and the example {text!r}"
        for guide, text, line in pairs
        if not _is_allowed(guide, text, line)
    ]


def edits(example: Path) -> list[Edit]:
    """The guides' lines that an example has replaced."""
    return [
        Edit(block, line.instead_of, line.text.strip())
        for region in regions(example)
        for block in region.blocks
        for line in region.lines
        if line.instead_of is not None
    ]


def insertions(example: Path) -> list[Insertion]:
    """The lines of our own that could change what the guides' lines around them do."""
    return [
        Insertion(block, textwrap.dedent("\n".join(part)).strip("\n"))
        for region in regions(example)
        for number, part in enumerate(region.ours)
        if number in region.resumed or _is_indented(part)
        for block in region.blocks
    ]


def _is_indented(part: list[str]) -> bool:
    code = (line for line in part if line.strip() and not line.strip().startswith("#"))
    return next(code, "").startswith(" ")


def _lines(code: str) -> list[str]:
    return textwrap.dedent(code).strip("\n").split("\n")


def _is_allowed(guide: str, text: str, line: Line) -> bool:
    if line.instead_of is not None:
        return line.because is not None and guide.strip() == line.instead_of and guide != text
    return guide == text.rstrip() or _is_ported_import(guide, text)


def _is_ported_import(guide: str, text: str) -> bool:
    """Whether both lines import the same names, one of them from Ray. Modules have one name here, and another one there."""
    old, new = _imported(guide), _imported(text)
    if old is None or new is None:
        return False
    is_module = old.names in _MODULES and new.names == _MODULES[old.names]
    return old.packages == {"ray"} and new.packages <= {"ray", "trainlib"} and (old.names == new.names or is_module)


@dataclass(frozen=True)
class _Imported:
    """What a line imports: from which packages, and what is called how."""

    packages: frozenset[str]
    names: frozenset[tuple[str, str]]


_MODULES = {
    frozenset({("ray", "ray")}): frozenset({("trainlib", "ray")}),
    frozenset({("v2", "sgd")}): frozenset({("sgd", "sgd")}),
}


def _imported(line: str) -> _Imported | None:
    try:
        (statement,) = ast.parse(line.strip()).body
    except (SyntaxError, ValueError):
        return None
    if isinstance(statement, ast.ImportFrom) and statement.module:
        packages = {statement.module.split(".")[0]}
        return _Imported(
            frozenset(packages), frozenset((name.name, name.asname or name.name) for name in statement.names)
        )
    if isinstance(statement, ast.Import):
        # Without "as", what is bound is the package: "import ray.train.torch" binds "ray".
        names = {
            (name.name, name.asname) if name.asname else (name.name.split(".")[0],) * 2 for name in statement.names
        }
        return _Imported(frozenset(name.name.split(".")[0] for name in statement.names), frozenset(names))
    return None
