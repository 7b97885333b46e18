"""Bins for the values of each column, found in rows of all ranks.

LightGBM itself finds the bins of a column on one rank, in the rows of that rank. Where rows are in some order, others do not fit them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trainlib._boosting.exchange import MOST_BYTES, ExchangeBytes

if TYPE_CHECKING:
    import lightgbm
    import pyarrow as pa

__all__ = ["OF_COMMON_BINS", "common_bins", "shares_of"]

OF_COMMON_BINS = {"feature_pre_filter": False, "enable_bundle": False, "pre_partition": True}
"""Parameters of a Dataset with such a reference. What cannot be split in the sample may well be split in all rows; LightGBM puts no columns
together where there is a reference; and each rank has its own rows. A Dataset and its reference have to agree on them."""
_SAMPLE = 200_000
"""How many rows LightGBM looks at, if nobody says so."""


def common_bins(
    features: pa.Table, rank: int, params: Mapping[str, Any], given: Mapping[str, Any], exchange: ExchangeBytes
) -> lightgbm.Dataset:
    """A Dataset of sampled rows of all ranks, to be the reference of each rank's own. It is the same on all ranks.

    Args:
        features: This rank's rows. The columns are the same on all ranks, though types may differ.
        rank: This one.
        params: LightGBM's parameters, without those of its network: bins are found without it.
        given: The arguments for the Dataset of ``train``.
        exchange: Brings the samples together.
    """
    import lightgbm
    import numpy as np
    import pyarrow as pa

    everyones = exchange(_described(features))
    schemas = [pa.ipc.read_schema(pa.py_buffer(each)) for each in everyones]
    rows = [int(schema.metadata[b"rows"]) for schema in schemas]
    common = _common(schemas)
    asked = int(params.get("bin_construct_sample_cnt") or _SAMPLE)
    width = sum(field.type.bit_width for field in common) / 8
    most = int(MOST_BYTES / 2 / max(width, 1))  # half of what may be sent: Arrow adds which values are missing
    count = min(asked, most)
    seed = (abs(int(params.get("data_random_seed") or params.get("seed") or 1)), rank)
    mine = _sample(features.cast(common, safe=False), shares_of(rows, count)[rank], seed)
    parts = [pa.ipc.open_stream(pa.py_buffer(each)).read_all() for each in exchange(_packed(mine))]
    sample = _sorted(pa.concat_tables(parts))
    more = {"categorical_feature": given["categorical_feature"]} if "categorical_feature" in given else {}
    return lightgbm.Dataset(sample, np.zeros(sample.num_rows, "float32"), params=dict(params), **more).construct()


def shares_of(rows: Sequence[int], count: int) -> list[int]:
    """How many rows each rank adds to a sample, in proportion to those that it has.

    Example:
        >>> shares_of([100, 300], 8), shares_of([2, 3], 8)
        ([2, 6], [2, 3])
    """
    total, before, shares = sum(rows), 0, []
    count = min(count, total)
    for each in rows:
        shares.append(count * (before + each) // total - count * before // total)
        before += each
    return shares


def _described(features: pa.Table) -> bytes:
    """The columns' names and types, and the number of rows."""
    plain = features.schema.remove_metadata()
    return bytes(plain.with_metadata({"rows": str(features.num_rows)}).serialize())


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The columns with types that fit the values of all ranks: where they differ, e.g. because a rank has missing values, float64."""
    import pyarrow as pa

    fields = []
    for place, name in enumerate(schemas[0].names):
        kinds = {schema.field(place).type for schema in schemas}
        kind = kinds.pop() if len(kinds) == 1 else pa.float64()
        fields.append(pa.field(name, pa.int8() if pa.types.is_boolean(kind) else kind))
    return pa.schema(fields)


def _sample(features: pa.Table, count: int, seed: tuple[int, int]) -> pa.Table:
    import numpy as np

    if count == features.num_rows:
        return features
    chosen = np.zeros(features.num_rows, dtype=bool)
    chosen[np.random.default_rng(seed).choice(features.num_rows, count, replace=False)] = True
    return features.filter(chosen)


def _sorted(sample: pa.Table) -> pa.Table:
    """The values of each column in their order. Bins do not depend on it, and LightGBM would take several times as long to sort them."""
    import numpy as np
    import pyarrow as pa

    return pa.table({name: np.sort(sample[name].to_numpy()) for name in sample.column_names})


def _packed(table: pa.Table) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()
