"""Rows as models take them: a DataFrame as one array.

This file is copied beside the model, and imports nothing of trainlib.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def as_frame(given: Any) -> pd.DataFrame:
    """Rows as a DataFrame of their own, which may be changed. An array becomes columns 0, 1, ...; images one column of arrays.

    In a dict, an array with several values for each row becomes one column of arrays.

    Example:
        >>> import numpy as np
        >>> as_frame(np.zeros((2, 3))).shape, as_frame({"x": [1.0]}).columns.tolist(), as_frame(np.zeros((2, 8, 8))).shape
        ((2, 3), ['x'], (2, 1))
        >>> as_frame({"input_ids": np.zeros((2, 3))}).shape
        (2, 1)
    """
    import numpy as np
    import pandas as pd

    if isinstance(given, np.ndarray) and given.ndim > 2:
        return pd.DataFrame({"data": list(given)})
    if isinstance(given, dict):
        given = {name: list(each) if np.ndim(each) > 1 else each for name, each in given.items()}
    return pd.DataFrame(given).copy()


def with_numbers(features: pd.DataFrame) -> pd.DataFrame:
    """The same columns, where those of numbers or of yes and no with gaps are columns of numbers: pandas does not know what they are.

    Example:
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"gap": [None, None], "yes": [True, None], "text": ["a", None]}, dtype=object)
        >>> [str(kind) for kind in with_numbers(rows).dtypes]
        ['float64', 'float64', 'object']
    """
    features = features.copy(deep=False)
    for place, kind in enumerate(features.dtypes):
        if str(kind) in ("object", "null[pyarrow]"):
            column = features.iloc[:, place]
            if all(isinstance(each, (bool, int, float)) for each in column.dropna()):
                features.isetitem(place, column.where(column.notna(), float("nan")).to_numpy("float64"))
    return features


def without_arrow(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows with columns as pandas has them by itself. Ray reads files into columns of Arrow's.

    Not all libraries take those: LightGBM calls their types unknown, and encoders of scikit-learn fail at missing text.

    Example:
        >>> import pandas as pd
        >>> of_arrow = pd.DataFrame({"x": [1.5, None], "n": [1, 2]}).convert_dtypes(dtype_backend="pyarrow")
        >>> [str(kind) for kind in of_arrow.dtypes], [str(kind) for kind in without_arrow(of_arrow).dtypes]
        (['double[pyarrow]', 'int64[pyarrow]'], ['float64', 'int64'])
    """
    import pandas as pd

    of_arrow = [name for name, kind in rows.dtypes.items() if isinstance(kind, pd.ArrowDtype)]
    if not of_arrow:
        return rows
    import pyarrow as pa

    # The metadata would bring Arrow's types back.
    plain = pa.Table.from_pandas(rows[of_arrow], preserve_index=False).to_pandas(ignore_metadata=True)
    made = rows.copy(deep=False)
    for at, name in enumerate(of_arrow):
        made[name] = plain.iloc[:, at].set_axis(rows.index)
    return made


def as_array(rows: pd.DataFrame) -> np.ndarray:
    """The features as one array: the column of arrays, if there is one, else all columns side by side, in their order.

    Raises:
        ValueError: they are not numbers, or there are several columns of arrays.

    Example:
        >>> import numpy as np
        >>> import pandas as pd
        >>> as_array(pd.DataFrame({"x": [1.0, 2.0], "y": [3, 4]})).tolist()
        [[1.0, 3.0], [2.0, 4.0]]
        >>> as_array(pd.DataFrame({"features": [np.ones(2), np.zeros(2)], "label": [0, 1]})).tolist()
        [[1.0, 1.0], [0.0, 0.0]]
    """
    import numpy as np
    import pandas as pd

    wide = _array_columns(rows)
    if len(wide) > 1:
        raise ValueError(f"the rows have several columns of arrays, {', '.join(map(str, wide))}: leave one of them")
    if wide:
        return np.stack([np.asarray(each) for each in rows[wide[0]]])
    for name, kind in rows.dtypes.items():
        if not pd.api.types.is_numeric_dtype(kind):
            raise ValueError(
                f"column {name!r} has no numbers, but values of type {kind}. Leave it out, or encode it with a preprocessor"
            )
    return np.column_stack([rows[name].to_numpy() for name in rows.columns]) if len(rows.columns) else rows.to_numpy()


def has_arrays(rows: pd.DataFrame) -> bool:
    """Whether there is a column of arrays, such as a Concatenator makes."""
    return bool(_array_columns(rows))


def _array_columns(rows: pd.DataFrame) -> list[Any]:
    import numpy as np

    return [name for name in rows.columns if len(rows) and isinstance(rows[name].iloc[0], (np.ndarray, list, tuple))]
