"""The preprocessing task: cached on its inputs, so that the same work is never done twice."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import INPUTS, TASK_SOURCE

from trainlib.data.tables import PreparedData, folder_for, prepare


@task(name="preprocess", task_run_name="preprocess · {source}", cache_policy=INPUTS + TASK_SOURCE, persist_result=True)
def preprocess(
    source: str, target: str, *, version: str, validation_size: float = 0.2, seed: int = 0, home: str = ""
) -> PreparedData:
    """Read a table, split it, scale it by its training part, and keep it as Parquet.

    Args:
        source: A CSV or Parquet file, or ``sklearn:digits``.
        target: The column to predict.
        version: What the source was when it was last looked at; another one means other data.
        validation_size: The share of rows for validation.
        seed: What the shuffle before the split starts from.
        home: Where it is kept; part of the cache's key, because another home has files of its own.
    """
    folder = folder_for(source, target, version, validation_size, seed)
    return prepare(source, target=target, validation_size=validation_size, seed=seed, folder=folder)
