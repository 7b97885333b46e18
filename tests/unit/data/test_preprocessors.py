"""The fingerprints of preprocessors, and chains of them."""

from __future__ import annotations

import importlib
import sys

from ray.data.preprocessors import Chain, MinMaxScaler, StandardScaler

from trainlib._data.preprocessors import chained, fingerprint, steps

OWN = """
from ray.data.preprocessor import Preprocessor

class Own(Preprocessor):
    _is_fittable = False

    def _transform_pandas(self, df):
        return df + {number}
"""


def test_fingerprints_depend_on_settings_and_code(tmp_path, monkeypatch):
    assert fingerprint(StandardScaler(columns=["a"])) == fingerprint(StandardScaler(columns=["".join("a")]))
    assert fingerprint(StandardScaler(columns=["a"])) != fingerprint(StandardScaler(columns=["b"]))
    assert fingerprint(StandardScaler(columns=["a"])) != fingerprint(MinMaxScaler(columns=["a"]))
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for number in (1, 22):
        (tmp_path / "own_preprocessor.py").write_text(OWN.format(number=number))
        sys.modules.pop("own_preprocessor", None)
        importlib.invalidate_caches()
        found.append(fingerprint(importlib.import_module("own_preprocessor").Own()))
    assert found[0] != found[1], "the same settings, other code"


def test_two_are_chained():
    one, other = StandardScaler(columns=["a"]), MinMaxScaler(columns=["a"])
    assert chained(None, None) is None
    assert chained(one, None) is one
    assert steps(chained(Chain(one, other), other)) == [one, other, other]
