"""Checkpoints of RLlib's algorithms."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from trainlib.checkpoint import Checkpoint
from trainlib.errors import CheckpointNotFoundError
from trainlib.rl._acting import write_acting
from trainlib.rl._served import MODULES

if TYPE_CHECKING:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.core.rl_module.rl_module import RLModule

__all__ = ["RLCheckpoint"]

_DEFAULT = "default_policy"


class RLCheckpoint(Checkpoint):
    """A checkpoint of an RLlib algorithm: its modules, its optimizers, its counters and its settings.

    Example:
        >>> from trainlib.rl import RLCheckpoint, RLTrainer
        >>> trainer = RLTrainer("PPO", config={"env": "CartPole-v1"})
        >>> def evaluate(checkpoint: RLCheckpoint) -> float:
        ...     algorithm = checkpoint.get_algorithm()  # or get_module(), which chooses actions without an environment
        ...     found = algorithm.evaluate()
        ...     algorithm.stop()
        ...     return found["env_runners"]["episode_return_mean"]
        >>> evaluate(trainer.fit().checkpoint)  # doctest: +SKIP
        21.5
    """

    kind = "rl"

    @classmethod
    def from_algorithm(cls, algorithm: Algorithm) -> Self:
        """A checkpoint of an algorithm, as it is now."""
        made = cls._in_temporary_folder(tempfile.mkdtemp(prefix="trainlib-rl-"))
        algorithm.save_to_path(made.path)
        write_acting(algorithm, made.path)
        return made

    def get_module(self, module_id: str = _DEFAULT) -> RLModule:
        """The module that chooses actions, by its id where there are several agents.

        Raises:
            UntrustedCheckpointError: it has code of somebody who is not known to be trusted.
            CheckpointNotFoundError: it has no such module.
        """
        from ray.rllib.core.rl_module.rl_module import RLModule

        self.require_trust()
        with self.as_directory() as folder:
            modules = Path(folder, MODULES)
            if not (modules / module_id).is_dir():
                known = sorted(each.name for each in modules.iterdir() if each.is_dir()) if modules.is_dir() else []
                raise CheckpointNotFoundError(
                    f"this checkpoint has no module {module_id!r}. It has {', '.join(map(repr, known)) or 'none'}"
                )
            return RLModule.from_checkpoint(str(modules / module_id))  # type: ignore[return-value]

    def get_policy(self, module_id: str = _DEFAULT) -> RLModule:
        """The same as :meth:`get_module`, under the name of Ray AIR: what used to be a policy is a module now."""
        return self.get_module(module_id)

    def get_algorithm(self) -> Algorithm:
        """The whole algorithm, with its env runners, which it starts in the Ray of this process. Call its ``stop()`` when done.

        Raises:
            UntrustedCheckpointError: it has code of somebody who is not known to be trusted.
        """
        from ray.rllib.algorithms.algorithm import Algorithm

        self.require_trust()
        with self.as_directory() as folder:
            return Algorithm.from_checkpoint(folder)  # type: ignore[return-value]

    def restore(self, algorithm: Algorithm) -> None:
        """Put an algorithm into the state of this checkpoint.

        Raises:
            UntrustedCheckpointError: it has code of somebody who is not known to be trusted.
            CheckpointNotFoundError: it is no checkpoint of an algorithm.
        """
        self.require_trust()
        with self.as_directory() as folder:
            if not Path(folder, MODULES).is_dir():
                raise CheckpointNotFoundError(
                    "This checkpoint was not saved by an RLlib algorithm. Pass one that an RLTrainer has saved, or that "
                    "RLCheckpoint.from_algorithm() has made"
                )
            algorithm.restore_from_path(folder)
