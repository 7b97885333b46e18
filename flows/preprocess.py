"""The flow that only preprocesses data."""

from __future__ import annotations

from trainlib._data.manifest import PreprocessedData
from trainlib._data.spec import PreprocessSpec
from trainlib._forms import Section, plain
from trainlib.flows._ending import outliving_prefect
from trainlib.flows._fields import about_field, about_missing
from trainlib.flows._form_flow import form_flow
from trainlib.flows._notifying import notifies
from trainlib.flows.demo_data import located
from trainlib.flows.forms import (
    DataSource,
    SplitSection,
    StepSection,
)
from trainlib.tasks.preprocess import preprocess as preprocess_task

__all__ = ["preprocess", "preprocess_spec_of"]


@notifies
@form_flow(name="preprocess", flow_run_name="preprocess · {source}")
def preprocess(
    source: DataSource,
    target: str = "",
    steps: list[StepSection] = [],  # noqa: B006  # it is only read, and a form shows it as empty
    split: SplitSection = SplitSection(),
    storage_path: str = "",
) -> PreprocessedData:
    """Read data, check and split them, fit preprocessors, and write Parquet. An earlier result is used again.

    Args:
        source: The data: CSV, Parquet or JSON Lines files, as the path or URI of one file, a glob, or a folder.
        target: The column to predict: it has to be there in every row, and to vary. Empty: none.
        steps: Preprocessors, one after the other: fitted on the rows for training, applied to all.
        split: Which rows are for training, and which for validation.
        storage_path: Folder or URI to store the preprocessed data in. Empty: trainlib's home folder.
    """
    spec = preprocess_spec_of(source, target, steps, split, storage_path)
    return outliving_prefect(lambda: _preprocess(spec))


def _preprocess(spec: PreprocessSpec) -> PreprocessedData:
    with about_missing("source"):
        return preprocess_task(spec)


def preprocess_spec_of(
    source: DataSource, target: str, steps: list[StepSection], split: Section, storage_path: str
) -> PreprocessSpec:
    """What the parameters of a flow describe. They are explained at the flow ``preprocess``."""
    with about_field("source"):
        where = located(source)
    return PreprocessSpec(
        source=where,
        target=target or None,
        steps=[plain(step) for step in steps],
        split=plain(split),
        storage_path=storage_path or None,
    )
