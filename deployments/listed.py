"""The deployments that prefect.yaml lists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

__all__ = ["FILE", "WORK_POOL", "ListedDeployment", "flow_names", "listed"]

FILE = Path(__file__).with_name("prefect.yaml")
"""The file that ``prefect deploy --all --prefect-file`` takes."""

WORK_POOL = "trainlib"
"""Where workers find the runs of deployments that ``prefect deploy`` has made."""


@dataclass(frozen=True)
class ListedDeployment:
    """One block of the list. What is only about workers is left out."""

    name: str
    entrypoint: str
    description: str | None = None
    tags: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    schedules: list[dict[str, Any]] = field(default_factory=list)
    concurrency_limit: int | dict[str, Any] | None = None


_ABOUT_WORKERS = ("work_pool",)


def listed() -> Iterator[ListedDeployment]:
    """All deployments, in the order of the list.

    Example:
        >>> next(listed()).entrypoint
        'trainlib.flows.train.train'
    """
    for block in yaml.safe_load(FILE.read_text(encoding="utf-8"))["deployments"]:
        yield ListedDeployment(**{name: value for name, value in block.items() if name not in _ABOUT_WORKERS})


def flow_names() -> list[str]:
    """The flows of all deployments. A flow has the name of its function."""
    return sorted({each.entrypoint.rpartition(".")[2] for each in listed()})
