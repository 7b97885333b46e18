"""A script pays for what it imports before its first line: the library alone is to cost nearly nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from trainlib import _rooms as rooms
from trainlib import flows, tasks

# Each takes a second or more. Only a training needs them, and it says that it is starting.
HEAVY = ("ray", "prefect", "mlflow", "optuna", "matplotlib", "pandas", "numpy", "sqlalchemy")
FRAMEWORKS = (
    "torch",
    "tensorflow",
    "horovod",
    "xgboost",
    "lightgbm",
    "sklearn",
    "transformers",
    "lightning",
    "gymnasium",
)


def imported_by(code: str, among: tuple[str, ...]) -> list[str]:
    """Which of these packages a fresh process has imported after running ``code``."""
    shown = f"import sys; {code}; print(*[name for name in {among} if name in sys.modules])"
    return subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True).stdout.split()


def test_importing_a_framework_s_trainer_imports_neither_the_framework_nor_what_a_training_needs():
    names = (*rooms.folders(), "lightning", "sgd")
    everything = f"import trainlib, {', '.join(f'trainlib.{name}' for name in names)}"
    assert imported_by(everything, among=HEAVY + FRAMEWORKS) == []


def test_importing_what_describes_a_sweep_imports_nothing_that_a_sweep_needs_to_run():
    assert imported_by("import trainlib.tune", among=HEAVY + FRAMEWORKS) == []


def test_importing_the_packages_of_flows_and_tasks_imports_neither():
    assert imported_by("import trainlib.flows, trainlib.tasks", among=HEAVY) == []


def test_a_training_imports_no_flow_but_its_own():
    others = {home for name, home in flows._homes.items() if home == f"trainlib.flows.{name}"} - {
        "trainlib.flows.train"
    }
    assert others
    assert imported_by("import trainlib.flows._fit", among=tuple(others)) == []


@pytest.mark.parametrize("package", [flows, tasks], ids=lambda package: package.__name__)
def test_a_lazy_package_has_the_names_that_it_lists(package):
    assert sorted(package._homes) == sorted(package.__all__)
    assert set(package.__all__) <= set(dir(package))
    for name, home in package._homes.items():
        assert getattr(package, name) is getattr(importlib.import_module(home), name)


def test_a_name_stays_what_it_is_when_the_module_of_the_same_name_is_imported_first():
    code = "import trainlib.flows.train; from trainlib.flows import train; assert train.name == 'train'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_lazy_package_has_no_other_names():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        flows.trian  # noqa: B018
