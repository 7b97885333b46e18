"""What only the memory of Ray has, for as long as this process is connected to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ray

from trainlib._execution import liveness

__all__ = ["Held", "hold"]


@dataclass(frozen=True, eq=False)
class Held:
    """Bytes in Ray's object store. They go when nobody holds this any more."""

    reference: Any
    session: str | None
    """The connection to Ray that has them: the reference means nothing to another one."""

    @property
    def is_lost(self) -> bool:
        """Whether this process has left that Ray."""
        return self.session is None or liveness.session() != self.session

    def read(self) -> bytes:
        """The bytes.

        Raises:
            LookupError: they are gone.
        """
        if self.is_lost:
            raise LookupError("the Ray that held it has ended")
        try:
            return ray.get(self.reference)  # type: ignore[no-any-return]
        except ray.exceptions.RayError as error:
            raise LookupError(str(error)) from error


def hold(content: bytes) -> Held:
    """Put bytes into Ray's object store. They are this process's own: they outlive the workers."""
    return Held(ray.put(content), liveness.session())
