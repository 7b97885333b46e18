"""What a person sees of a platform: one screen that says what runs where."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table

from trainlib._platform import access
from trainlib._platform.record import Platform
from trainlib._platform.services import DEPLOYMENTS, MLFLOW, PREFECT, RAY, log_file
from trainlib._storage import home

__all__ = ["announce", "show"]

_TITLES = {PREFECT: "Prefect", MLFLOW: "MLflow", RAY: "Ray", DEPLOYMENTS: "deployments"}
# What makes scripts use other services than the platform's.
_OVERRIDES = ("PREFECT_API_URL", "MLFLOW_TRACKING_URI", "RAY_ADDRESS")


def announce(console: Console) -> None:
    """Say what is about to start."""
    console.print(f"Starting Prefect, MLflow, Ray and the deployments of {home()}", soft_wrap=True, markup=False)


def show(console: Console, platform: Platform, what: str, end: str = "") -> None:
    """Show a platform: all its services, with addresses, processes and logs."""
    addresses = {
        PREFECT: platform.prefect,
        MLFLOW: platform.mlflow,
        RAY: platform.ray,
        DEPLOYMENTS: "train, sweep, ...",
    }
    table = Table("service", "address", "pid", "log", box=None, pad_edge=False)
    for name, title in _TITLES.items():
        table.add_row(title, addresses[name], str(platform.pids.get(name, "")), log_file(name).name)
    console.print(f"The platform of {home()} {what}.", soft_wrap=True, markup=False)
    console.print(table, soft_wrap=True)
    for line in (*_remarks(platform), end):
        if line:
            console.print(line, soft_wrap=True, markup=False)


def _remarks(platform: Platform) -> list[str]:
    remarks = [f"The logs are in {log_file(PREFECT).parent}", "Scripts in this home join it."]
    if platform.has_auth:
        remarks.append(f"User {access.USERNAME}; the password is in {access.password_file()}. Scripts know it.")
    remarks += [f"But {name} is set here, so scripts use that." for name in _OVERRIDES if os.environ.get(name)]
    return remarks
