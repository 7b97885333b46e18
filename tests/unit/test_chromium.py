"""How the tests in a browser find one, and what is said where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.browser import chromium
from tests.browser.chromium import ChromiumMissingError, ensure_chromium, find_chromium


def program(folder: Path, name: str, script: str = "") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any program. Those in the folder can be added."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(chromium.SETTING, raising=False)
    return tmp_path


def test_it_is_found_under_any_of_its_names(machine: Path):
    assert find_chromium() is None
    other = program(machine, "google-chrome")
    assert find_chromium() == str(other)
    debians = program(machine, "chromium")
    assert find_chromium() == ensure_chromium() == str(debians)


def test_another_one_can_be_named(machine: Path, monkeypatch: pytest.MonkeyPatch):
    program(machine, "chromium")
    named = program(machine, "my-chrome")
    monkeypatch.setenv(chromium.SETTING, str(named))
    assert find_chromium() == str(named)
    monkeypatch.setenv(chromium.SETTING, "/no/such/chrome")
    with pytest.raises(ChromiumMissingError, match="CHROMIUM is '/no/such/chrome', which is no program"):
        ensure_chromium()


@pytest.mark.parametrize("has_apt", [True, False])
def test_without_root_it_says_what_to_install(has_apt, machine: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    if has_apt:
        program(machine, "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert chromium.main() == 1
    said = capsys.readouterr().err
    assert "sudo apt-get install chromium" in said
    assert "CHROMIUM=/path/to/chrome make test" in said
    assert ("only root may install it" in said) == has_apt


def test_root_installs_it(machine: Path, monkeypatch: pytest.MonkeyPatch, capfd):
    made = f"#!/bin/sh\n' > {machine}/chromium && /bin/chmod +x {machine}/chromium"
    program(machine, "apt-get", f'echo "apt-get $*"; if [ $1 = install ]; then printf \'{made}; fi')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert chromium.main() == 0
    said = capfd.readouterr().out
    assert "Installing Debian's Chromium" in said
    assert "apt-get update" in said, "people see how far it is"
    assert find_chromium() == str(machine / "chromium")


def test_an_installation_that_fails_is_told(machine: Path, monkeypatch: pytest.MonkeyPatch, capfd):
    program(machine, "apt-get", "exit 100")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert chromium.main() == 1
    assert "`apt-get update -q` ended with 100" in capfd.readouterr().err
