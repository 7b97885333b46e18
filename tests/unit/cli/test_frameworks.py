"""What the doctor says about frameworks, by what is installed."""

from __future__ import annotations

import pytest

from trainlib import _rooms as rooms
from trainlib._cli import frameworks
from trainlib._cli.findings import Health
from trainlib._cli.frameworks import examine_frameworks, framework_finding
from trainlib._cli.versions import installed_versions

EVERYTHING = {package: "1.0" for name in rooms.ROOMS for package in rooms.load(name).packages}


def found(name: str, installed: dict[str, str], problem: str = "") -> tuple[Health, str]:
    room = rooms.load(name)
    finding = framework_finding(name, room.packages, installed, problem, room.version_package)
    return finding.health, finding.detail


@pytest.mark.parametrize(
    ("name", "there_anyway"),
    [
        ("rl", {"ray": "2.60.0"}),
        ("rl", {"ray": "2.60.0", "torch": "2.13.0", "scipy": "1.17"}),
        ("huggingface", {"torch": "2.13.0"}),
        ("huggingface", {"torch": "2.13.0", "accelerate": "1.12"}),
        ("accelerate", {"torch": "2.13.0"}),
        ("lightgbm", {"cffi": "2.0"}),
        ("horovod", {}),
    ],
)
def test_a_framework_is_not_installed_because_something_that_it_needs_is(name, there_anyway):
    assert found(name, there_anyway, "XTrainer needs it: pip install") == (Health.NOTE, "not installed")


@pytest.mark.parametrize("name", rooms.ROOMS)
def test_what_is_complete_is_well_unless_its_trainer_cannot_use_it(name):
    assert found(name, EVERYTHING) == (Health.OK, "1.0")
    assert found(name, EVERYTHING, "it was built for another") == (Health.PROBLEM, "1.0, unusable")


def test_a_framework_without_a_package_that_its_trainer_needs_besides_is_noted_with_what_to_install():
    # Somebody may use it without trainlib.
    assert found("lightgbm", {"lightgbm": "4.6.0"}) == (Health.NOTE, "4.6.0, but cffi is not installed")
    alone = framework_finding(
        "huggingface", ("transformers", "accelerate", "torch"), {"transformers": "5.1"}, "install"
    )
    assert (alone.detail, alone.advice) == ("5.1, but accelerate and torch are not installed", "install")


def test_the_version_of_rllib_is_that_of_ray():
    assert found("rl", {**EVERYTHING, "ray": "2.60.0"}) == (Health.OK, "2.60.0")


def test_where_nothing_is_installed_nothing_is_wrong(monkeypatch):
    monkeypatch.setattr(
        frameworks, "find_spec", lambda package: object() if package in ("ray", "torch", "cffi") else None
    )
    monkeypatch.setattr(rooms, "find_spec", frameworks.find_spec)
    findings = {each.name: each for each in examine_frameworks()}
    assert findings.keys() == {*rooms.ROOMS, "lightning"}
    missing = {name: each for name, each in findings.items() if name not in ("torch", "horovod")}
    assert {each.detail for each in missing.values()} == {"not installed"}
    assert {each.health for each in missing.values()} == {Health.NOTE}
    assert all("pip install 'trainlib[" in each.advice for each in missing.values())


def test_what_is_installed_has_its_version_though_its_distribution_has_another_name():
    from importlib.metadata import version

    (found,) = [each for each in examine_frameworks() if each.name == "sklearn"]
    assert (found.health, found.detail) == (Health.OK, version("scikit-learn"))
    assert installed_versions()["scikit-learn"] == version("scikit-learn")
