"""The command line: ``trainlib COMMAND``, or ``python -m trainlib.cli COMMAND``. ``trainlib --help`` lists the commands."""

from __future__ import annotations

import sys

from trainlib._cli.app import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
