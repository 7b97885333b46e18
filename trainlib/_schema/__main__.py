"""``python -m trainlib._schema``: make the templates anew, for the versions of MLflow and Prefect that are installed.

With ``PACKAGE DATABASE``, create only that database, by the package's own migrations.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from trainlib._schema.migrations import installed_version, migrate
from trainlib._schema.templates import MAKE, PACKAGES, dump

_FOLDER = Path(__file__).parent


def main(arguments: list[str]) -> None:
    if arguments:
        package, file = arguments
        migrate(Path(file), package)
        return
    with tempfile.TemporaryDirectory() as folder:
        for package in PACKAGES:
            database = Path(folder) / f"{package}.db"
            subprocess.run([sys.executable, "-m", __package__, package, str(database)], check=True)
            version = installed_version(package)
            header = f"-- {package} {version}: an empty database, made by `{MAKE}`\n"
            template = _FOLDER / f"{package}.sql"
            template.write_text(header + "\n".join(dump(database)) + "\n")
            print(f"{template.name}: {package} {version}")


if __name__ == "__main__":
    main(sys.argv[1:])
