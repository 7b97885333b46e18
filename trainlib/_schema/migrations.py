"""Creating the databases as the packages do it themselves: by all their migrations."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

__all__ = ["installed_version", "migrate"]


def installed_version(package: str) -> str:
    """The version that the package itself tells."""
    if package == "mlflow":
        from mlflow import __version__
    else:
        from prefect import __version__
    return __version__


def migrate(database: Path, package: str) -> None:
    """Create an empty database. Prefect reads its settings only once, so that each needs a process of its own."""
    if package == "mlflow":
        _migrate_mlflow(database)
    else:
        _migrate_prefect(database)


def _migrate_mlflow(database: Path) -> None:
    from mlflow.store.db.utils import _initialize_tables
    from sqlalchemy import create_engine

    logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)
    engine = create_engine(f"sqlite:///{database}")
    try:
        _initialize_tables(engine)
    finally:
        engine.dispose()


def _migrate_prefect(database: Path) -> None:
    os.environ["PREFECT_API_DATABASE_CONNECTION_URL"] = f"sqlite+aiosqlite:///{database}"
    from prefect.server.database import provide_database_interface

    asyncio.run(provide_database_interface().create_db())
