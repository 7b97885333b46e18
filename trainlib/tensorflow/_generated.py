"""The files that TensorFlow writes for generated code."""

from __future__ import annotations

import sys
from pathlib import Path

_PREFIX = "__autograph_generated_file"


def remove_generated_files() -> None:
    """Remove the generated files of this process. TensorFlow does so at a normal exit, but workers are killed."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_PREFIX) and module.__file__ is not None:
            Path(module.__file__).unlink(missing_ok=True)
