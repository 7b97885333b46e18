"""The preprocessing task. What was prepared before, from the same bytes in the same way, is not prepared again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from prefect import task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from trainlib._data.manifest import PreprocessedData
from trainlib._data.preprocess import plan_preprocessing, run_preprocessing
from trainlib._data.spec import PreprocessSpec
from trainlib.tasks._background import show

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

__all__ = ["preprocess"]


# Prefect's own cache would still answer when the files are gone, and another Prefect server would know nothing of
# them. The manifest beside the files tells whether they are there.
@task(name="preprocess", task_run_name="preprocess · {spec.source}", cache_policy=NO_CACHE)
def preprocess(
    spec: PreprocessSpec,
    preprocessor: Preprocessor | None = None,
    *,
    say: Callable[[str], None] | None = None,
) -> PreprocessedData:
    """Read data, check and split them, fit the preprocessor on the rows for training, and keep all as Parquet.

    Args:
        spec: What to read, how to split it, and what to apply to it.
        preprocessor: Applied instead of the steps of ``spec``.
        say: Told how far it is, besides the log of the task run.
    """
    logger = get_run_logger()

    def tell(text: str) -> None:
        logger.info(text)
        if say is not None:
            say(text)

    prepared = run_preprocessing(plan_preprocessing(spec, preprocessor), tell)
    about = f"Prepared from {prepared.source}"
    show(partial(create_markdown_artifact, _summary(prepared), key="prepared-data", description=about))
    return prepared


def _summary(prepared: PreprocessedData) -> str:
    rows = [
        ("source", f"`{prepared.source}`"),
        ("rows for training", prepared.train_rows),
        ("rows for validation", prepared.validation_rows),
        ("columns", len(prepared.columns)),
        ("preprocessor", f"`{prepared.preprocessor[:200]}`"),
        ("digest", f"`{prepared.digest}`"),
        ("kept in", f"`{prepared.folder}`"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
