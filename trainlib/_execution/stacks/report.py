"""The stacks of all ranks as text: all of it for a file or a terminal, and the essence for an error."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainlib._execution.stacks.frames import Frame, ProcessStacks

_PACKAGE = str(Path(__file__).parents[2])
_LIBRARY = re.compile(r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3|^<frozen ")

# Bounds of what an error shows.
_USERS_FRAMES = 6
_INNERMOST = 2
_WIDTH = 160
_GROUPS = 6
_RANKS_NAMED = 8


@dataclass(frozen=True)
class RankStacks:
    """What one rank is doing."""

    rank: int
    hostname: str
    pid: int
    process: ProcessStacks
    raised: tuple[Frame, ...] = ()
    """The calls that led to what its training function raised, if it did."""

    def __str__(self) -> str:
        return f"rank {self.rank} ({self.hostname}, pid {self.pid})"


def in_full(ranks: Sequence[RankStacks]) -> str:
    """All threads of all ranks, with the training function's first."""
    return "\n\n".join(_all_threads(rank) for rank in ranks)


def in_short(ranks: Sequence[RankStacks]) -> str:
    """The user's own calls and the innermost ones of every rank's training function. What several ranks do is said once."""
    groups: dict[str, list[RankStacks]] = {}
    for rank in ranks:
        groups.setdefault(_essence(rank), []).append(rank)
    shown = list(groups.items())[:_GROUPS]
    texts = [f"{_names(group)}:\n{essence}" for essence, group in shown]
    if left_out := sum(len(group) for group in groups.values()) - sum(len(group) for _, group in shown):
        texts.append(f"and {left_out} other ranks")
    return "\n".join(texts)


def _all_threads(rank: RankStacks) -> str:
    parts = [str(rank)]
    if rank.process.training is None:
        parts.append(_without_training(rank, rank.raised))
    for thread in rank.process.threads:
        title = f"Training function (thread {thread.name}):" if thread.is_training else f"Thread {thread.name}:"
        parts.append("\n".join([title, *map(str, thread.frames)]))
    return "\n".join(parts)


def _essence(rank: RankStacks) -> str:
    training = rank.process.training
    if training is None:
        return _without_training(rank, essential(rank.raised))
    return "\n".join(_short(frame) for frame in essential(training.frames))


def _without_training(rank: RankStacks, raised: Sequence[Frame | None]) -> str:
    if raised:
        return "\n".join(["  its training function raised in", *map(_short, raised)])
    return f"  {rank.process.problem or 'its training function does not run: it has ended, or has not started yet'}"


def essential(frames: Sequence[Frame]) -> list[Frame | None]:
    """The user's own frames and the innermost ones, without those from which trainlib calls the training function.

    None stands for frames that are left out.
    """
    frames = _inside(frames)
    users = [index for index, frame in enumerate(frames) if not _is_library(frame)]
    kept = sorted({*users[-_USERS_FRAMES:], *range(len(frames))[-_INNERMOST:]})
    found: list[Frame | None] = []
    before = -1
    for index in kept:
        if index != before + 1:
            found.append(None)
        found.append(frames[index])
        before = index
    return found


def _inside(frames: Sequence[Frame]) -> Sequence[Frame]:
    """The frames of the training function."""
    start = next((index + 1 for index, frame in enumerate(frames) if frame.calls_training_function), 0)
    while start < len(frames) and frames[start].file.startswith(_PACKAGE):
        start += 1
    return frames[start:] or frames


def _is_library(frame: Frame) -> bool:
    return frame.file.startswith(_PACKAGE) or _LIBRARY.search(frame.file) is not None


def _short(frame: Frame | None) -> str:
    return "\n".join(line[:_WIDTH] for line in str(frame or "  ...").splitlines())


def _names(ranks: Sequence[RankStacks]) -> str:
    if len(ranks) == 1:
        return str(ranks[0])
    named = ", ".join(str(rank.rank) for rank in ranks[:_RANKS_NAMED])
    return f"ranks {named}" + (f" and {len(ranks) - _RANKS_NAMED} more" if len(ranks) > _RANKS_NAMED else "")
