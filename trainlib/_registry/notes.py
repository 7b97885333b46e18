"""What a run's description in MLflow says, as Markdown: where it runs, its attempts, its trials, its plots.

A person may write there too. So each part of ours is a section that is replaced as a whole, and the rest stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from trainlib._secrets import masked_uri

if TYPE_CHECKING:
    from trainlib._registry.attempts import AttemptRecord

__all__ = ["Section", "attempts_section", "escaped", "flow_run_line", "with_flow_run", "with_section"]

# MLflow accepts tags of up to 8000 characters, and cuts longer ones.
_LONGEST = 7500
_LONGEST_MESSAGE = 200
# MLflow draws tables without any space between their columns.
_GAP = "&ensp;"
_FLOW_RUN = "[Prefect flow run "
_SPECIAL = re.compile(r"[\\`*_\[\]~<>|@]")


@dataclass(frozen=True)
class Section:
    """A heading, and what is below it: some lines, a table, and lines after the table."""

    title: str
    intro: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    """The cells of each row, as Markdown. The first rows matter most: those that have no room are left out."""
    outro: Sequence[str] = ()

    @property
    def heading(self) -> str:
        """Its first line."""
        return f"### {self.title}"

    @property
    def end(self) -> str:
        """Its last line, which nobody sees."""
        return f"<!-- end of {self.title} -->"

    def text(self, most: int) -> str:
        """The section in so many characters at most, with as many rows as fit in. Empty if not even the rest fits in."""
        lines = [_row(cells) for cells in self.rows]
        room = most - len(self._text([], left=len(lines)))
        lengths = accumulate(len(line) + 1 for line in lines)
        shown = lines[: sum(length <= room for length in lengths)]
        return self._text(shown, left=len(lines) - len(shown)) if room >= 0 else ""

    def _text(self, rows: Sequence[str], left: int) -> str:
        table = [_row(self.columns), f"|{'---|' * len(self.columns)}", *rows] if self.columns else []
        more = [f"… and {left} more"] if left else []
        blocks = [[self.heading], self.intro, table, more, self.outro, [self.end]]
        return "\n\n".join("\n".join(block) for block in blocks if block)


def with_section(note: str, section: Section) -> str:
    """A note with a section in it, in place of an earlier one of that title. What else is in the note stays.

    Example:
        >>> print(with_section("by Ada", Section("Trials", ["2 trials"])))
        by Ada
        <BLANKLINE>
        ### Trials
        <BLANKLINE>
        2 trials
        <BLANKLINE>
        <!-- end of Trials -->
    """
    heading, end = (f"^{re.escape(line)}$" for line in (section.heading, section.end))
    # From the last heading before our end: a person may have one of that title too, above ours.
    ours = re.compile(f"{heading}(?:(?!{heading}).)*?{end}", re.MULTILINE | re.DOTALL)
    before, *after = (part.strip("\n") for part in ours.split(note, maxsplit=1))
    text = section.text(_LONGEST - sum(len(part) + 2 for part in (before, *after)))
    return "\n\n".join(part for part in (before, text, *after) if part) if text else note


def flow_run_line(name: str, url: str) -> str:
    """The line of a note that leads to a Prefect flow run.

    Example:
        >>> flow_run_line("brave-fox", "http://prefect/1")
        '[Prefect flow run brave-fox](http://prefect/1)'
    """
    return f"{_FLOW_RUN}{name}]({url})"


def with_flow_run(note: str, line: str) -> str:
    """A note with the line of another flow run, in place of that of an earlier one.

    Example:
        >>> print(with_flow_run("[Prefect flow run a](http://prefect/1)\\n\\nby Ada", flow_run_line("b", "http://prefect/2")))
        [Prefect flow run b](http://prefect/2)
        <BLANKLINE>
        by Ada
    """
    others = [each for each in note.splitlines() if not each.startswith(_FLOW_RUN)]
    return "\n".join([line, *([""] if others and others[0] else []), *others])


def attempts_section(attempts: Sequence[AttemptRecord]) -> Section:
    """How the attempts of a training went."""
    columns = ("attempt", "ended", "rank", "node", "resumed from", "iterations lost", "")
    rows = [
        (
            str(each.number),
            each.outcome.value,
            str(each.rank) if each.rank is not None else "",
            escaped(each.node or ""),
            escaped(each.resumed_from or "the start"),
            str(each.lost_iterations),
            escaped(_first_line(each.message)),
        )
        for each in reversed(attempts)
    ]
    ended = Counter(each.outcome.value for each in attempts)
    return Section("Attempts", [", ".join(f"{count} {how}" for how, count in ended.items())], columns, rows)


def escaped(text: str) -> str:
    r"""A text that Markdown shows as it is, on one line. Passwords in URIs are masked.

    Example:
        >>> escaped("model_a | lr=*")
        'model\\_a &#124; lr=\\*'
    """
    return _SPECIAL.sub(_escape, masked_uri(" ".join(text.split())))


def _escape(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};" if found[0] in "|<>@" else f"\\{found[0]}"


def _first_line(message: str) -> str:
    line = (message.splitlines() or [""])[0]
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"


def _row(cells: Sequence[str]) -> str:
    return f"| {f'{_GAP} | '.join(cells)} |"
