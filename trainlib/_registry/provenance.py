"""Where a training came from: who started which code."""

from __future__ import annotations

import getpass
import os
import sys

from trainlib._registry import tags
from trainlib._registry.environment import Environment


def source_tags() -> dict[str, str]:
    """MLflow's own tags for user and source, which its client does not set by itself."""
    found = {
        tags.MLFLOW_USER: _user(),
        tags.MLFLOW_SOURCE_NAME: os.path.abspath(sys.argv[0]) if sys.argv[0] else "python",
        tags.MLFLOW_SOURCE_TYPE: "LOCAL",
    }
    if commit := Environment.here().commit:
        found[tags.MLFLOW_GIT_COMMIT] = commit
    return found


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        return str(os.getuid())
