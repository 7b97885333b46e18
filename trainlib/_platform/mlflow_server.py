"""The process behind a platform's MLflow: ``python -m trainlib._platform.mlflow_server PORT [--auth]``.

It brings the database of the home up to date, and then is ``mlflow server``.
"""

from __future__ import annotations

import sys

from trainlib import _storage as storage
from trainlib._execution.network import LOOPBACK
from trainlib._registry.client import connect
from trainlib._registry.store import home_store


def main(port: str, *options: str) -> None:
    """Serve the database of the home."""
    store = home_store()
    connect(store)
    from mlflow.cli import cli

    arguments = {
        "--backend-store-uri": store.uri,
        # Scripts and workers are on this machine: they write artifacts themselves.
        "--default-artifact-root": (storage.home() / "artifacts").as_uri(),
        "--host": LOOPBACK,
        "--port": port,
        "--workers": "1",
        "--uvicorn-opts": "--log-level warning",  # not a line for each request
        **({"--app-name": "basic-auth"} if "--auth" in options else {}),
    }
    cli.main(["server", *(word for pair in arguments.items() for word in pair)])


if __name__ == "__main__":
    main(*sys.argv[1:])
