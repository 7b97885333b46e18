"""Where Chromium is, and how it comes onto a machine that has none: ``python -m tests.browser.chromium``.

Playwright's own browsers are not used: they are downloads of half a gigabyte from one server. Debian's Chromium does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

__all__ = ["SETTING", "ChromiumMissingError", "ensure_chromium", "find_chromium"]

SETTING = "CHROMIUM"
"""The environment variable that names another browser than the one in PATH."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

_UPDATE = ("apt-get", "update", "-q")
_INSTALL = ("apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium")


class ChromiumMissingError(Exception):
    """There is no browser to test with."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The tests in a browser need Chromium, and {reason}. Install it (Debian, Ubuntu: `sudo apt-get install chromium`; "
            f"Fedora: `sudo dnf install chromium`), or name a Chromium or Chrome that is not in PATH: "
            f"`{SETTING}=/path/to/chrome make test`."
        )


def find_chromium() -> str | None:
    """The path of the browser: the one that the setting names, or else the first in PATH. None if there is none.

    Raises:
        ChromiumMissingError: the setting names no program.
    """
    if named := os.environ.get(SETTING):
        if (found := shutil.which(named)) is None:
            raise ChromiumMissingError(f"{SETTING} is {named!r}, which is no program")
        return found
    return next(filter(None, map(shutil.which, NAMES)), None)


def ensure_chromium() -> str:
    """The path of the browser, which is installed first where it is missing and this process may do that.

    Raises:
        ChromiumMissingError: it is missing, and stays so.
    """
    if found := find_chromium():
        return found
    if shutil.which("apt-get") is None:
        raise ChromiumMissingError("none was found in PATH")
    if os.geteuid() != 0:
        raise ChromiumMissingError("none was found in PATH, and only root may install it")
    print("Installing Debian's Chromium, which the tests in a browser need: a minute, once", flush=True)
    for command in (_UPDATE, _INSTALL):
        if (ended := subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})).returncode:
            raise ChromiumMissingError(f"`{' '.join(command)}` ended with {ended.returncode}")
    if (found := find_chromium()) is None:
        raise ChromiumMissingError("none is in PATH after `apt-get install chromium`")
    return found


def main() -> int:
    """Make sure that there is a browser, or say what to install."""
    try:
        ensure_chromium()
    except ChromiumMissingError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
