"""The flow that only preprocesses data."""

from __future__ import annotations

from prefect import flow

from trainlib._data.manifest import PreprocessedData
from trainlib._data.spec import PreprocessSpec
from trainlib.flows._ending import outliving_prefect
from trainlib.tasks.preprocess import preprocess as preprocess_task

__all__ = ["preprocess"]


@flow(name="preprocess", flow_run_name="preprocess · {spec.source}", persist_result=False)
def preprocess(spec: PreprocessSpec) -> PreprocessedData:
    """Read data, check and split them, fit preprocessors, and write Parquet. An earlier result is used again.

    Args:
        spec: What to read, how to split it, and what to apply to it.
    """
    return outliving_prefect(lambda: preprocess_task(spec))
