"""The preprocessing task. The same bytes are never preprocessed twice in the same way."""

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
    """Read data, check and split them, fit the preprocessor on the training rows, and write Parquet.

    Args:
        spec: What to read, how to split it, and what to apply to it.
        preprocessor: Applied instead of the steps of ``spec``.
        say: Called with each line of progress, which also goes to the log of the task run.
    """
    logger = get_run_logger()

    def tell(text: str) -> None:
        logger.info(text)
        if say is not None:
            say(text)

    data = run_preprocessing(plan_preprocessing(spec, preprocessor), tell)
    about = f"Preprocessed from {data.source}"
    show(partial(create_markdown_artifact, _summary(data), key="preprocessed-data", description=about))
    return data


def _summary(data: PreprocessedData) -> str:
    rows = [
        ("source", f"`{data.source}`"),
        ("rows for training", data.train_rows),
        ("rows for validation", data.validation_rows),
        ("rows held out", data.test_rows),
        ("columns", len(data.columns)),
        ("preprocessor", f"`{data.preprocessor[:200]}`"),
        ("digest", f"`{data.digest}`"),
        ("stored in", f"`{data.folder}`"),
    ]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
