"""The password of a platform: made once, kept where only the user can read it, given to servers and to who may ask them."""

from __future__ import annotations

import importlib.util
import os
import secrets
from contextlib import suppress
from pathlib import Path

from trainlib._platform.lock import folder
from trainlib.errors import ConnectionFailedError, PlatformError

__all__ = ["USERNAME", "mlflow_settings", "password", "password_file", "prefect_client", "prefect_server"]

USERNAME = "admin"

# Checking a password takes MLflow some 0.1 s by design. So long it remembers that one was right.
_REMEMBERED_S = 60


def password_file() -> Path:
    """The file with the password."""
    return folder() / "password"


def password() -> str:
    """The password of the platform of this home.

    Raises:
        ConnectionFailedError: there is none.
    """
    try:
        return password_file().read_text().strip()
    except FileNotFoundError:
        raise ConnectionFailedError(
            f"the platform asks for a password, but {password_file()} is gone. Start the platform again: `trainlib down`, "
            "then `trainlib up --auth`."
        ) from None


def prefect_server() -> dict[str, str]:
    """The settings of a Prefect server that asks for the password. Made now, if there is none yet."""
    return {"PREFECT_SERVER_API_AUTH_STRING": f"{USERNAME}:{_secret(password_file())}"}


def prefect_client() -> dict[str, str]:
    """The settings of a Prefect client that knows the password."""
    return {"PREFECT_API_AUTH_STRING": f"{USERNAME}:{password()}"}


def mlflow_settings() -> dict[str, str]:
    """The settings of an MLflow server that asks for the password. Its users are in a database of their own.

    Raises:
        PlatformError: MLflow lacks a package for it, or the password was deleted, but not the user who had it.
    """
    if importlib.util.find_spec("flask_wtf") is None:
        raise PlatformError("MLflow asks for passwords only with the package Flask-WTF: pip install 'trainlib[auth]'")
    users = folder() / "mlflow-users.db"
    if users.exists() and not password_file().exists():
        raise PlatformError(
            f"{password_file()} is gone, but MLflow still expects that password. Put it back, or delete {users}, too, for "
            "a new password. Users that were added to MLflow are deleted with it."
        )
    config = folder() / "mlflow-auth.ini"
    config.write_text(
        "[mlflow]\n"
        "default_permission = READ\n"
        f"database_uri = sqlite:///{users}\n"
        f"admin_username = {USERNAME}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        f"auth_cache_ttl_seconds = {_REMEMBERED_S}\n"
    )
    return {
        "MLFLOW_AUTH_CONFIG_PATH": str(config),
        "MLFLOW_AUTH_ADMIN_PASSWORD": _secret(password_file()),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": _secret(folder() / "mlflow-key"),
    }


def _secret(file: Path) -> str:
    """A random text that stays the same. The file is the user's alone from the beginning, and there when it is complete."""
    if not file.exists():
        aside = file.with_name(f"{file.name}.{os.getpid()}")
        with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as new:
            new.write(secrets.token_urlsafe(24) + "\n")
        with suppress(FileExistsError):  # another process was faster
            os.link(aside, file)
        aside.unlink()
    return file.read_text().strip()
