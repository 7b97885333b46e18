"""The order of the files of tests: the longest come first, so that all processes of a whole run end at the same time.

Whoever gets a long file as the last one would work on it while the other has nothing left to do. A file that has become long
belongs into the list; one that is missing, or not run, does no harm.

It is a pytest plugin, which ``tests/conftest.py`` loads.
"""

from __future__ import annotations

import pytest

# They need a process that has not started Ray.
_FIRST = "tests/unit/"
# Those of a minute or more.
_LONG = (
    "tests/browser/",
    "tests/chaos/test_chaos.py",
    "tests/integration/test_backends.py",
    "tests/integration/test_ingest.py",
    "tests/integration/test_rl.py",
    "tests/integration/test_pipeline.py",
    "tests/integration/test_machine_faults.py",
    "tests/integration/test_platform.py",
    "tests/integration/test_continued_and_used.py",
    "tests/integration/test_owners.py",
    "tests/integration/test_mlflow_away.py",
    "tests/integration/test_promotion.py",
    "tests/integration/test_huggingface.py",
    "tests/integration/test_cancel.py",
    "tests/integration/test_sgd.py",
    "tests/integration/test_warm_workers.py",
    "tests/integration/test_preprocess.py",
    "tests/integration/test_several_nodes.py",
    "tests/integration/test_boosted_trees.py",
    "tests/integration/test_keras.py",
    "tests/integration/test_one_sweep_of_many_trainers.py",
    "tests/integration/test_prefect_faults.py",
    "tests/integration/test_training.py",
    "tests/integration/test_flows.py",
    "tests/integration/test_remote_code.py",
    "tests/integration/test_users_ray.py",
    "tests/integration/test_sweeps.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _place_of(item.nodeid))  # within a place, they keep their order


def _place_of(test: str) -> int:
    if test.startswith(_FIRST):
        return -1
    return next((place for place, start in enumerate(_LONG) if test.startswith(start)), len(_LONG))
