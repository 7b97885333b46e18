"""A Prefect API to talk to: the configured one, the platform's, or a server of this process's own.

Prefect's own temporary server shares the terminal: Ctrl-C ends it before it has heard of it, and what it
then prints is nothing a user can act on. This one is apart, and outlives the process by a moment.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlparse

import prefect.context
from prefect.settings import PREFECT_API_URL, PREFECT_UI_URL

from trainlib import _storage as storage
from trainlib._platform import joining
from trainlib._platform.record import Platform
from trainlib._platform.services import HEARTBEAT_S
from trainlib.errors import ConnectionFailedError
from trainlib.flows import _serve
from trainlib.flows._undelivered import deliver_states
from trainlib.tasks._prefect_server import answers, wait_until_it_answers

# Where `trainlib up` serves the same database with its UI.
LOCAL_UI = "http://127.0.0.1:4200"

_HEARTBEAT = "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"
START_S = 120.0
_ANSWER_S = 5.0
_WATCH_S = 1.0
_ASK_S = 5.0
# A server that answered before and is silent for so long hangs. Its database may be busy for some seconds.
_HANGS_S = 20.0

_lock = threading.Lock()
_server: subprocess.Popen[bytes] | None = None
_port = 0
_watcher: threading.Thread | None = None
_joined: dict[str, str] = {}
"""What is set in the environment to use the platform's server."""


def start() -> None:
    """Make sure that there is an API address, starting a server where there is none. Does not wait for it.

    Raises:
        ConnectionFailedError: one is configured, but does not answer.
        PlatformMismatchError: a platform is up, but not for this environment.
    """
    global _server, _port
    with _lock:
        if _server is not None:
            if _server.poll() is not None:
                _server = _launch(_port)
            return
        _join(platform())
        if configured := PREFECT_API_URL.value():
            if _joined:
                _require_platforms_answer(configured)
            else:
                _require_answer(configured)
                _tell_often()
            deliver_states(configured)
            return
        _port = _free_port()
        _server = _launch(_port)
        os.environ["PREFECT_API_URL"] = f"http://127.0.0.1:{_port}/api"
        prefect.context.refresh_global_settings_context()


def platform() -> Platform | None:
    """The platform whose Prefect server this process uses, or is about to use. None if it uses another one.

    Raises:
        PlatformMismatchError: one is up, but not for this environment.
    """
    is_chosen = _server is not None or (PREFECT_API_URL.value() is not None and not _joined)
    return None if is_chosen else joining.joined()


def _join(platform: Platform | None) -> None:
    """Use the server of a platform, or no longer that of one that has ended."""
    global _joined
    wanted = joining.prefect_settings(platform) if platform is not None else {}
    if wanted == _joined:
        return
    for name in _joined.keys() - wanted.keys():
        os.environ.pop(name, None)
    os.environ.update(wanted)
    _joined = wanted
    prefect.context.refresh_global_settings_context()


def _tell_often() -> None:
    """Let runs tell as often that they live as those that join a platform: the server may be a platform's all the same."""
    if _HEARTBEAT not in os.environ:
        os.environ[_HEARTBEAT] = str(HEARTBEAT_S)
        prefect.context.refresh_global_settings_context()


def wait() -> None:
    """Return when the server that :func:`start` started answers. From then on it is restarted whenever it ends or hangs.

    Raises:
        ConnectionFailedError: it ended, or does not answer in time.
    """
    global _watcher
    if _server is None:
        return
    url = PREFECT_API_URL.value()
    deadline = time.monotonic() + START_S
    while not answers(url):
        if _server.poll() is not None or time.monotonic() > deadline:
            what = "ended" if _server.poll() is not None else f"did not answer in {START_S:g} s"
            raise ConnectionFailedError(
                f"the embedded Prefect server {what}: see {_log()}. To use a server of your own, set PREFECT_API_URL."
            )
        time.sleep(0.05)
    deliver_states(url)
    with _lock:
        if _watcher is None or not _watcher.is_alive():
            _watcher = threading.Thread(target=_watch, args=(url,), name="prefect-server-watch", daemon=True)
            _watcher.start()


def _launch(port: int) -> subprocess.Popen[bytes]:
    log = _log()
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        return subprocess.Popen(
            [sys.executable, "-P", _serve.__file__, str(port)],  # as a file: `-m` would import all of trainlib.flows
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for the training, which still has to tell how it ended
            env={
                **os.environ,
                "PREFECT_UI_ENABLED": "0",
                "PREFECT__SERVER_EPHEMERAL": "1",
                "PREFECT__SERVER_FINAL": "1",
                "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
                # Automations, also those that a platform has left in the database, are for servers that stay.
                "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
                # The list of block types is for the UI, whose server makes it. That one must not find it noted as made.
                "PREFECT_API_BLOCKS_REGISTER_ON_START": "false",
                "PREFECT_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
            },
        )


def _watch(url: str) -> None:
    """Restart the server at the same address when it has ended, or does not answer any more.

    Once it is back, it hears of the runs that ended meanwhile.
    """
    global _server
    asked_at = answered_at = time.monotonic()
    is_new = False
    while True:
        time.sleep(_WATCH_S)
        assert _server is not None
        if is_new or time.monotonic() - asked_at >= _ASK_S:
            asked_at = time.monotonic()
            if answers(url):
                answered_at = time.monotonic()
                if is_new:
                    is_new = False
                    deliver_states(url)
        with _lock:
            if _server.poll() is None and time.monotonic() - answered_at < _HANGS_S:
                continue
            _server.kill()
            _server.wait()
            _server = _launch(_port)
        is_new = True
        answered_at = time.monotonic() + START_S  # it may take so long to start


def _log() -> Path:
    return storage.home() / "logs" / "prefect-server.log"


def flow_run_url(flow_run_id: str) -> str:
    """The page of a flow run in the Prefect UI."""
    api = PREFECT_API_URL.value()
    served = api is not None and _server is None
    ui = (PREFECT_UI_URL.value() or str(api).removesuffix("/api")) if served else LOCAL_UI
    return f"{ui}/runs/flow-run/{flow_run_id}"


def _require_platforms_answer(url: str) -> None:
    """A platform restarts a server that has ended."""
    if not wait_until_it_answers(joining.RESTART_S):
        raise joining.no_answer("Prefect", url)


def _require_answer(url: str) -> None:
    """Prefect's own client tries for long; a person wants to know at once."""
    if urlparse(url).scheme not in ("http", "https"):
        raise ConnectionFailedError(f"PREFECT_API_URL={url} is no address: write it like http://127.0.0.1:4200/api")
    try:
        urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=_ANSWER_S).close()
    except urllib.error.HTTPError:
        return  # somebody answers; Prefect's client will tell what is wrong
    except (OSError, ValueError) as error:
        raise ConnectionFailedError(
            f"no Prefect server answers at PREFECT_API_URL={url} ({getattr(error, 'reason', error)}). Start it with "
            "`prefect server start`, correct the address, or unset it to run without a server."
        ) from error


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
