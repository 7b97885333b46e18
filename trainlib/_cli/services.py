"""Where a script that is started here would find Prefect, MLflow and Ray."""

from __future__ import annotations

import os

from trainlib._platform import record

__all__ = ["prefect_api", "prefect_login", "ray_address"]


def prefect_api() -> str | None:
    """The address of Prefect's API: the configured one, or that of the platform of this home. None if a script starts its own."""
    from prefect.settings import PREFECT_API_URL

    if configured := PREFECT_API_URL.value():
        return str(configured)
    platform = record.running()
    return None if platform is None else platform.prefect_api


def prefect_login() -> str | None:
    """What the Prefect server of the platform asks for. None if a script here does not use it, or it asks for nothing."""
    from prefect.settings import PREFECT_API_URL

    platform = None if PREFECT_API_URL.value() else record.running()
    if platform is None or not platform.has_auth:
        return None
    from trainlib._platform.joining import prefect_settings

    return prefect_settings(platform).get("PREFECT_API_AUTH_STRING")


def ray_address() -> str | None:
    """The address of Ray: the configured one, or that of the platform of this home. None if a script starts its own."""
    if configured := os.environ.get("RAY_ADDRESS"):
        return None if configured == "local" else configured
    platform = record.running()
    return None if platform is None else platform.ray
