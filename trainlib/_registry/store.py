"""Which MLflow store a training is recorded in, and how MLflow itself is told about it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from trainlib import _storage as storage
from trainlib._importing import collect_as_usual

__all__ = ["TrackingStore", "absolute_uri", "current_store", "default_store", "home_store"]

_URI, _TOKEN = "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN"
_DATABASE = "mlflow.db"
_LOGIN = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
# What a worker needs, besides, to reach the tracking server and the store of the artifacts as this process does.
_CREDENTIALS = (
    *_LOGIN,
    "MLFLOW_TRACKING_SERVER_CERT_PATH",
    "MLFLOW_TRACKING_INSECURE_TLS",
    "MLFLOW_S3_ENDPOINT_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_SAS_TOKEN",
)
# What trainlib wants of MLflow wherever the user has not said otherwise.
_PREFERENCES = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",  # by default it tries for minutes
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",  # by default a server that hangs is waited for 120 s, each time
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",  # the result has the link
}


# All that is set here for a while.
_CHANGED = (_URI, _TOKEN, *_LOGIN, *_PREFERENCES)


@dataclass(frozen=True)
class TrackingStore:
    """Where runs are recorded: a tracking server, or a database on this machine."""

    uri: str
    token: str | None = field(default=None, repr=False)
    """What a tracking server asks for, if it asks for a token."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    """The user and the password that a platform's tracking server asks for. For any other, the environment has them."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables by which MLflow finds this store and is let in, for example in a worker."""
        needed = {
            name: value for name, value in os.environ.items() if name in _CREDENTIALS or name.startswith("FSSPEC_")
        }
        login = dict(zip(_LOGIN, self.login, strict=True)) if self.login else {}
        return {**needed, _URI: self.uri, **({_TOKEN: self.token} if self.token else {}), **login}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Make this the store that all of MLflow uses in this process, and put everything back afterwards.

        A client of its own is not enough: parts of MLflow look only at the environment and at
        ``mlflow.get_tracking_uri()``, whatever client they are called through.
        """
        _process.enter(self)
        chosen = _chosen.set(self)
        try:
            yield
        finally:
            _chosen.reset(chosen)
            _process.leave(self)


def current_store() -> TrackingStore:
    """The store in use where this is called, or else the default."""
    return _chosen.get() or default_store()


def default_store() -> TrackingStore:
    """The store that the user's ``MLFLOW_TRACKING_URI`` names, or else that of the home: its platform's server, or its database.

    While a server has the database open, scripts go through it: that takes no longer, they need not load the database's own
    code, and none waits for another's lock.

    Raises:
        PlatformMismatchError: a platform is up, but not for this environment.
    """
    environment = _process.users_environment()
    if uri := environment.get(_URI):
        return TrackingStore(absolute_uri(uri), environment.get(_TOKEN) or None)
    from trainlib._platform import access, joining

    platform = joining.joined()
    if platform is None:
        return home_store()
    login = (access.USERNAME, access.password()) if platform.has_auth else None
    return TrackingStore(platform.mlflow, login=login)


def home_store() -> TrackingStore:
    """The database in trainlib's home folder."""
    return TrackingStore(f"sqlite:///{storage.home() / _DATABASE}")


def absolute_uri(uri: str) -> str:
    """A store's URI with the path of its database made absolute: workers may run in another directory.

    The path of a folder stands for a database in it.

    Example:
        >>> absolute_uri("/data/mlruns"), absolute_uri("http://host:5000")
        ('sqlite:////data/mlruns/mlflow.db', 'http://host:5000')
    """
    if (folder := _as_folder(uri)) is not None:
        return f"sqlite:///{os.path.abspath(folder)}/{_DATABASE}"
    path = uri.removeprefix("sqlite:///")
    return f"sqlite:///{os.path.abspath(path)}" if path != uri and not path.startswith("/") else uri


def _as_folder(uri: str) -> str | None:
    """The folder that a URI names; None if it names a database or a server."""
    if uri.startswith("file:"):
        return unquote(urlsplit(uri).path)
    is_plain = "://" not in uri and not uri.startswith(("databricks", "uc:", "sqlite:"))
    return os.path.expanduser(uri) if is_plain else None


class _Process:
    """What MLflow knows in this process. Several trainings may use it at once; the last to leave restores it.

    Two trainings with different stores at the same time work as far as MLflow honours its clients: for the rest,
    the one that came last counts.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._stores: list[TrackingStore] = []
        self._environment: dict[str, str | None] = {}
        self._explicit_uri: str | None = None
        """What the user passed to ``mlflow.set_tracking_uri``."""

    def enter(self, store: TrackingStore) -> None:
        with self._lock:
            is_first = not self._stores
            if is_first:
                self._environment = {name: os.environ.get(name) for name in _CHANGED}
                self._explicit_uri = None
            self._stores.append(store)
            try:
                if is_first:
                    self._set_preferences()
                self._apply(store)
            except BaseException:
                self.leave(store)
                raise

    def leave(self, store: TrackingStore) -> None:
        with self._lock:
            self._stores.remove(store)
            if self._stores:
                self._apply(self._stores[-1])
            else:
                self._restore()

    def users_environment(self) -> Mapping[str, str]:
        """The environment as the user set it, without what is set here for a while."""
        with self._lock:
            if not self._stores:
                return {name: os.environ[name] for name in _CHANGED if name in os.environ}
            return {name: value for name, value in self._environment.items() if value is not None}

    def _set_preferences(self) -> None:
        for name, value in _PREFERENCES.items():
            os.environ.setdefault(name, value)  # before the import: that is when MLflow decides about telemetry
        os.environ.pop(_URI, None)
        if _is_imported():
            from mlflow import get_tracking_uri, is_tracking_uri_set

            self._explicit_uri = get_tracking_uri() if is_tracking_uri_set() else None

    def _apply(self, store: TrackingStore) -> None:
        if _is_imported():  # or else it finds the store in the environment
            from mlflow import set_tracking_uri

            set_tracking_uri(store.uri)
        os.environ.pop(_TOKEN, None)
        self._put_back(_LOGIN)  # another store's are not for this one
        os.environ.update(store.environment)

    def _restore(self) -> None:
        try:
            if _is_imported():
                from mlflow import set_tracking_uri

                set_tracking_uri(self._explicit_uri)  # type: ignore[arg-type]  # None: nothing is set
        finally:
            self._put_back(self._environment)
            collect_as_usual()

    def _put_back(self, names: Iterable[str]) -> None:
        for name in names:
            value = self._environment[name]
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _is_imported() -> bool:
    """Whether MLflow is. Then the user may have told it of another store, and it may remember one."""
    return "mlflow" in sys.modules


_process = _Process()
_chosen: ContextVar[TrackingStore | None] = ContextVar("tracking_store", default=None)
