"""What a backend of your own is made of: the interface, its settings, and the workers that it sets up."""

from trainlib._execution.backend import Backend, BackendConfig
from trainlib._execution.causes import Cause
from trainlib._execution.group import WorkerGroup

__all__ = ["Backend", "BackendConfig", "Cause", "WorkerGroup"]
