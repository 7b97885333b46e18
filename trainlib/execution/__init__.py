"""Ray: the cluster connection, the gang, its workers, one attempt, and what a framework adds to it."""

from trainlib.execution.backend import Backend, BackendConfig
from trainlib.execution.causes import Cause
from trainlib.execution.group import WorkerGroup

__all__ = ["Backend", "BackendConfig", "Cause", "WorkerGroup"]
