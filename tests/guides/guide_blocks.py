"""The code blocks of the five guides, and what the checker of the examples compares with.

``blocks/001.txt`` has the blocks of guide 001, without its prose. Above each block are the line of the guide where it begins, its language,
and a digest of its text, so that no block is edited by hand. Whoever has the guides makes the files anew, and sees in
``git diff`` whether they were right::

    python -m tests.guides.guide_blocks /path/to/the/guides
"""

from __future__ import annotations

import hashlib
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

BLOCKS = Path(__file__).parent / "blocks"

_DIRECTIVE = re.compile(r"^( *)\.\. code-block:: *(\w*)$")
_HEADING = re.compile(r"^@@ line (\d+) (\w+) (\w{16})$")


@dataclass(frozen=True)
class Block:
    """A code block of a guide."""

    guide: str
    """The guide's number, e.g. ``001``."""
    line: int
    """The line of the guide with its ``.. code-block::``."""
    language: str
    """``python``, ``diff``, ``bash``, or ``text`` if the guide says nothing."""
    code: str

    @property
    def name(self) -> str:
        return f"{self.guide}:{self.line}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.code.encode()).hexdigest()[:16]

    def side(self, side: str | None) -> str:
        """The code itself, or one side of a diff: ``before`` or ``after``."""
        if self.language != "diff":
            return self.code
        left_out = {"before": "+", "after": "-"}[side or "after"]
        lines = [line for line in self.code.splitlines() if not line.startswith(left_out)]
        # Some diffs have a column for their signs, in others a sign stands in the place of the first space.
        has_column = all(line[:1] in ("", "+", "-", " ") for line in self.code.splitlines())
        return "\n".join(line[1:] if has_column else _without_sign(line) for line in lines)


def _without_sign(line: str) -> str:
    if line[:1] not in ("+", "-"):
        return line
    return " " + line[1:] if line[1:2] == " " else line[1:]


def in_guide(guide: str, text: str) -> list[Block]:
    """The code blocks in the text of a guide. Those in comments are none."""
    lines = text.splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        if directive := _DIRECTIVE.match(line):
            indentation, language = directive.groups()
            inside = []
            for below in lines[number:]:
                if below.strip() and not below.startswith(indentation + "    "):
                    break
                inside.append(below.rstrip())
            while inside and (not inside[0] or inside[0].lstrip().startswith(":")):
                inside.pop(0)  # the directive's options
            code = textwrap.dedent("\n".join(inside)).strip("\n")
            found.append(Block(guide, number, language or "text", code))
    return found


def stored() -> list[Block]:
    """The blocks of all guides, from the files in this folder."""
    blocks = []
    for file in sorted(BLOCKS.glob("*.txt")):
        heading, code = None, list[str]()
        for line in [*file.read_text().splitlines(), "@@"]:
            if not line.startswith("@@"):
                code.append(line)
                continue
            if heading is not None:
                block = Block(file.stem, int(heading[1]), heading[2], "\n".join(code).strip("\n"))
                if block.digest != heading[3]:
                    raise ValueError(f"{file.name}: the block of line {block.line} is not the guide's any more")
                blocks.append(block)
            heading, code = _HEADING.match(line), []
    return blocks


def store(guides: Path) -> None:
    """Write the files in this folder anew."""
    BLOCKS.mkdir(exist_ok=True)
    for path in sorted(guides.glob("*.txt")):
        number = path.name[:3]
        parts = [
            f"@@ line {block.line} {block.language} {block.digest}\n{block.code}\n"
            for block in in_guide(number, path.read_text())
        ]
        (BLOCKS / f"{number}.txt").write_text("\n".join(parts))


if __name__ == "__main__":
    store(Path(sys.argv[1]))
