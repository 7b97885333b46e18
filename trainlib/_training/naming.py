"""What runs are called that nobody has given a name: they say what is trained, and when it was begun."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainlib.trainer import DataParallelTrainer

__all__ = ["subject_name", "sweep_name", "training_name"]

_LONGEST = 60


def training_name(trainer: DataParallelTrainer, now: datetime) -> str:
    """The name of a training. Its folder has it too, and begins as Ray's do.

    Example:
        >>> from trainlib import DataParallelTrainer
        >>> def classify(config): ...
        >>> training_name(DataParallelTrainer(classify), datetime(2026, 1, 31, 9, 30))
        'DataParallelTrainer_2026-01-31_09-30-00 · classify x1'
    """
    what = _short(subject_name(trainer.subject) or "a function")
    return f"{type(trainer).__name__}_{now:%Y-%m-%d_%H-%M-%S} · {what} x{trainer.scaling_config.num_workers}"


def sweep_name(what: str, searched: Iterable[str], now: datetime) -> str:
    """The name of a sweep, of which ``searched`` are the params.

    Example:
        >>> sweep_name("classify", ["model.lr", "layers"], datetime(2026, 1, 31, 9, 30))
        'sweep · classify over lr, layers · 2026-01-31 09:30:00'
    """
    over = ", ".join(name.rpartition(".")[2] for name in searched)
    return f"sweep · {_short(f'{what} over {over}' if over else what)} · {now:%Y-%m-%d %H:%M:%S}"


def subject_name(subject: Any) -> str | None:
    """What a function, a class or the class of an object is called in code; None if that tells nothing. A text is its own name.

    Example:
        >>> subject_name(partial(print, end="")), subject_name(lambda: None), subject_name("PPO")
        ('print', None, 'PPO')
    """
    if isinstance(subject, str):
        return subject
    while isinstance(subject, partial):
        subject = subject.func
    name = getattr(subject, "__name__", None) or type(subject).__name__
    return name if name.isidentifier() else None


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
