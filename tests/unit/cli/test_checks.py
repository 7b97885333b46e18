"""What the doctor finds, and what it says about it."""

from __future__ import annotations

import json
import os
import socket
from importlib.metadata import version

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from trainlib import __version__
from trainlib import _storage as storage
from trainlib._cli import checks
from trainlib._cli.checks import Health, examine
from trainlib._cli.exit_codes import ExitCode
from trainlib._cli.frameworks import examine_frameworks
from trainlib._platform import record
from trainlib._platform.record import Platform
from trainlib._process import Process
from trainlib.cli import main


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home, and nothing configured."""
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o700)
    with temporary_settings(restore_defaults=[PREFECT_API_URL]):
        yield tmp_path / "home"


def found(name: str) -> checks.Finding:
    (finding,) = [each for each in examine() if each.name == name]
    return finding


def test_a_machine_without_anything_configured_is_well(home, capsys):
    assert main(["doctor", "--json"]) == ExitCode.DONE
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert report["versions"]["Ray"] == version("ray")
    health = {each["name"]: each["health"] for each in report["findings"]}
    assert {health[name] for name in ("Python", "home", "disk", "Prefect", "MLflow", "Ray")} == {"ok"}
    assert health["platform"] == "note"
    assert not (home / "mlflow.db").exists(), "looking changes nothing"
    assert main(["doctor"]) == ExitCode.DONE
    assert "`trainlib up` starts one" in capsys.readouterr().out


def test_what_does_not_answer_is_broken(home, monkeypatch, capsys):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ada:pw@127.0.0.1:9")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        assert main(["doctor", "--json"]) == ExitCode.FAILED
    shown = capsys.readouterr().out
    broken = {each["name"]: each for each in json.loads(shown)["findings"] if each["health"] == "problem"}
    assert broken.keys() == {"Prefect", "MLflow", "Ray"}
    assert "correct MLFLOW_TRACKING_URI, or unset it" in broken["MLflow"]["advice"]
    assert "pw@" not in shown


def test_a_platform_that_is_up_is_where_scripts_go(home):
    with socket.create_server(("127.0.0.1", 0)) as ray:
        address = f"127.0.0.1:{ray.getsockname()[1]}"
        nobody = "http://127.0.0.1:9"
        record.write(Platform(str(Process.this()), nobody, nobody, address, version=__version__))
        assert found("platform").detail == f"up: {nobody}, {nobody}"
        assert found("Ray").detail == f"{version('ray')} at {address}"
        assert found("Prefect").health is Health.PROBLEM
        assert f"{nobody}/api" in found("Prefect").detail
        record.write(Platform(str(Process.this()), nobody, nobody, address, version="0.0.1"))
        assert "trainlib 0.0.1 in" in found("platform").detail
        assert "`trainlib down`, then `trainlib up`" in found("platform").advice


def test_a_home_that_cannot_be_used(home, monkeypatch):
    (home / "format.json").write_text('{"format": 99}')
    assert "newer trainlib (format 99" in found("home").detail
    (home / "format.json").write_text("{")
    assert "format.json is broken" in found("home").detail
    (home / "format.json").unlink()
    os.chmod(home, 0o755)
    assert found("home").advice == f"chmod 700 {home}"
    home.rmdir()
    assert found("home").health is Health.NOTE
    monkeypatch.setattr(checks, "_LITTLE_DISK", 2**80)
    assert found("disk").health is Health.NOTE
    monkeypatch.setattr(checks, "_NO_DISK", 2**80)
    assert found("disk").health is Health.PROBLEM
    assert str(storage.home()) in found("disk").detail


@pytest.mark.parametrize(
    ("script", "health", "detail"),
    [
        ("echo 'NVIDIA A100, 81920 MiB'", Health.PROBLEM, "NVIDIA A100, 81920 MiB, but torch is a build for CPUs"),
        ("echo 'Driver mismatch' >&2; exit 9", Health.PROBLEM, "nvidia-smi fails: Driver mismatch"),
    ],
)
def test_gpus_that_cannot_be_used(home, tmp_path, monkeypatch, script, health, detail):
    monkeypatch.setattr(checks, "version_of", lambda package: "2.13.0+cpu")
    command = tmp_path / "nvidia-smi"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert [(each.health, each.detail) for each in checks._gpus()] == [(health, detail)]


def test_a_horovod_of_other_frameworks_is_broken(monkeypatch):
    from trainlib.errors import HorovodUnavailableError
    from trainlib.horovod import _room

    def rebuild() -> None:
        raise HorovodUnavailableError("Horovod was built for torch 1.0. Rebuild it")

    monkeypatch.setattr(_room, "ROOM", _room.Room(**{**vars(_room.ROOM), "packages": ("json",), "check": rebuild}))
    (horovod,) = [each for each in examine_frameworks() if each.name == "horovod"]
    assert (horovod.health, horovod.advice) == (Health.PROBLEM, "Horovod was built for torch 1.0. Rebuild it")
    assert horovod.detail == "of unknown version, unusable"
