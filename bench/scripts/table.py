"""A table to preprocess."""

from __future__ import annotations

from pathlib import Path

from trainlib._data.spec import PreprocessSpec, StepSpec

ROWS = 500_000


def spec_for(folder: Path) -> PreprocessSpec:
    """Write the table, and return how to preprocess it."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(ROWS, 8)).round(3), columns=list("abcdefgh"))
    table.assign(label=rng.integers(0, 3, ROWS)).to_csv(folder / "table.csv", index=False)
    return PreprocessSpec(
        source=str(folder / "table.csv"),
        target="label",
        steps=[StepSpec(name="StandardScaler")],
        storage_path=str(folder / "prepared"),
    )
