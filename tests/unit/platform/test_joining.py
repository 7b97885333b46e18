"""A script joins the platform of its home if it is of the same environment."""

from __future__ import annotations

import socket
import stat
import sys
import time
from dataclasses import replace

import psutil
import pytest

from trainlib import __version__
from trainlib._platform import access, commands, joining, ports, record
from trainlib._platform.lock import holder, only_one
from trainlib._platform.record import Platform
from trainlib._process import Process
from trainlib._registry.client import require_answer
from trainlib._registry.experiments import default_location
from trainlib._registry.store import default_store, home_store
from trainlib._registry.urls import run_url
from trainlib.errors import ConnectionFailedError, PlatformError, PlatformMismatchError


@pytest.fixture
def platform(tmp_path, monkeypatch) -> Platform:
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI", "RAY_ADDRESS", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"):
        monkeypatch.delenv(name, raising=False)
    platform = Platform(
        str(Process.this()),
        "http://127.0.0.1:4201",
        "http://127.0.0.1:5001",
        "127.0.0.1:6380",
        version=__version__,
    )
    record.write(platform)
    return platform


def test_its_mlflow_is_the_default_store_and_its_address_in_all_links(platform, tmp_path, monkeypatch):
    assert default_store().uri == "http://127.0.0.1:5001"
    assert run_url(home_store().uri, "1", "abc").startswith("http://127.0.0.1:5001/#/")
    assert default_location("http://127.0.0.1:5001", "a") == default_location(home_store().uri, "a")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://mine:5000")
    assert default_store().uri == "http://mine:5000"
    record.forget()
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert default_store() == home_store()
    assert run_url(home_store().uri, "1", "abc").startswith("http://127.0.0.1:5000/#/")


def test_one_line_says_what_is_joined(platform, tmp_path, monkeypatch):
    say = joining.announcement
    assert say(platform, prefect=True, mlflow=True) == (
        f"joining the platform of {tmp_path}: Prefect http://127.0.0.1:4201, MLflow http://127.0.0.1:5001, Ray 127.0.0.1:6380"
    )
    monkeypatch.setenv("RAY_ADDRESS", "cluster:6379")
    assert (
        say(platform, prefect=False, mlflow=True) == f"joining the platform of {tmp_path}: MLflow http://127.0.0.1:5001"
    )
    assert say(platform, prefect=False, mlflow=False) is None


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"version": "0.0.1"}, f"runs trainlib 0.0.1, and this is trainlib {__version__}"),
        ({"python": "/opt/other"}, f"runs the environment /opt/other, and this is {sys.prefix}"),
    ],
)
def test_another_environment_is_refused_by_name(platform, tmp_path, change, names):
    record.write(replace(platform, **change))
    with pytest.raises(PlatformMismatchError) as refused:
        default_store()
    assert names in str(refused.value)
    assert str(tmp_path) in str(refused.value)
    assert "`trainlib down`" in str(refused.value)
    assert "TRAINLIB_HOME" in str(refused.value)


def test_a_service_that_does_not_answer_is_waited_for_and_is_the_platforms(platform, tmp_path, monkeypatch):
    """Nobody listens there, and nobody has set the address that is asked."""
    monkeypatch.setattr(joining, "RESTART_S", 0.5)
    started = time.monotonic()
    with pytest.raises(ConnectionFailedError, match=rf"MLflow of the platform of {tmp_path} .*`trainlib status`"):
        require_answer(default_store().uri)
    assert time.monotonic() - started > 0.5


def test_a_platform_of_before_the_machine_was_switched_off_is_not_joined(platform):
    """After that, nobody knows whether its pid is another's. Its machine counts as another one."""
    before = replace(Process.this(), machine="0a0a0a0a")
    record.write(replace(platform, process=str(before)))
    assert record.running() is None
    assert record.last() is not None


def test_a_password_is_made_once_and_is_the_users_alone(platform, tmp_path, monkeypatch):
    monkeypatch.setattr(access.importlib.util, "find_spec", lambda name: object())
    with pytest.raises(ConnectionFailedError, match="trainlib up --auth"):
        access.password()
    mlflow, prefect = access.mlflow_settings(), access.prefect_server()
    assert prefect["PREFECT_SERVER_API_AUTH_STRING"] == f"admin:{mlflow['MLFLOW_AUTH_ADMIN_PASSWORD']}"
    assert access.mlflow_settings() == mlflow
    for file in (access.password_file(), tmp_path / "platform" / "mlflow-key"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    record.write(replace(platform, has_auth=True))
    password = access.password()
    assert joining.prefect_settings(record.running())["PREFECT_API_AUTH_STRING"] == f"admin:{password}"
    store = default_store()
    assert store.environment["MLFLOW_TRACKING_PASSWORD"] == password
    assert password not in repr(store)


def test_a_password_that_was_deleted_is_not_replaced_behind_mlflows_back(platform, tmp_path, monkeypatch):
    monkeypatch.setattr(access.importlib.util, "find_spec", lambda name: object())
    (tmp_path / "platform" / "mlflow-users.db").touch()
    with pytest.raises(PlatformError, match=r"mlflow-users\.db"):
        access.mlflow_settings()


def test_a_missing_package_is_named(platform, monkeypatch):
    monkeypatch.setattr(access.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PlatformError, match=r"pip install 'trainlib\[auth\]'"):
        access.mlflow_settings()


def test_a_port_that_is_taken_is_named_with_who_has_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=rf"port {port} is taken by process {psutil.Process().pid} \(.*--prefect-port"
        ):
            ports.require_free(port, "--prefect-port")
    ports.require_free(port, "--prefect-port")


def test_asking_for_a_platform_leaves_nothing_in_an_empty_home(tmp_path, monkeypatch):
    """A backup can only be restored into an empty one."""
    monkeypatch.setenv("TRAINLIB_HOME", str(tmp_path))
    assert commands.status() == []
    assert commands.down() is False
    assert commands.log_files() == {}
    assert list(tmp_path.iterdir()) == []


def test_one_process_holds_a_home(platform):
    assert holder() is None
    with only_one() as first, only_one() as second:
        assert (first, second) == (True, False)
        assert holder() == Process.this()
    assert holder() is None
    with only_one() as again:
        assert again
