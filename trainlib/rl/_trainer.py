"""The trainer for RLlib's algorithms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainlib._data.config import DataConfig
from trainlib.checkpoint import Checkpoint
from trainlib.config import RunConfig, ScalingConfig
from trainlib.rl._algorithms import checked, require_steps
from trainlib.rl._config import RLConfig
from trainlib.rl._environments import require_env
from trainlib.rl._rllib import tensorflow_left_alone
from trainlib.rl._room import ROOM
from trainlib.trainer import DataParallelTrainer

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

__all__ = ["RLTrainer"]


class RLTrainer(DataParallelTrainer):
    """Trains a policy with one of RLlib's algorithms. The workers are its env runners.

    One process runs the algorithm. Its env runners, its evaluation env runners and its learners have their room in the same gang.
    Each iteration is a report, with a checkpoint. The training ends when ``RunConfig.stop`` says so.

    Example:
        >>> from trainlib import RunConfig, ScalingConfig
        >>> from trainlib.rl import RLTrainer
        >>> trainer = RLTrainer(
        ...     "PPO",
        ...     config={"env": "CartPole-v1", "lr": 3e-4},
        ...     scaling_config=ScalingConfig(num_workers=2),
        ...     run_config=RunConfig(stop={"env_runners/episode_return_mean": 150}),
        ... )
        >>> trainer.fit().checkpoint.get_module()  # doctest: +SKIP
        DefaultPPOTorchRLModule(...)
    """

    room = ROOM

    def __init__(
        self,
        algorithm: str | type[Algorithm] | None = None,
        *,
        config: dict[str, Any] | AlgorithmConfig | None = None,
        rl_config: RLConfig | None = None,
        scaling_config: ScalingConfig | dict[str, Any] | None = None,
        run_config: RunConfig | dict[str, Any] | None = None,
        datasets: dict[str, Any] | None = None,
        dataset_config: DataConfig | None = None,
        preprocessor: Preprocessor | None = None,
        resume_from_checkpoint: Checkpoint | str | Path | None = None,
    ) -> None:
        """Describe a training. Nothing is started before ``fit()``.

        Args:
            algorithm: RLlib's name of the algorithm, e.g. ``"PPO"``, or a subclass of its ``Algorithm``. With an ``AlgorithmConfig``,
                it may be left out.
            config: the algorithm's settings: a dict, or an ``AlgorithmConfig`` such as ``PPOConfig()``. ``env`` is the environment: a name
                that gymnasium knows or that was registered with ``ray.tune.register_env``, a module and a name in it, such as
                ``"ale_py:ALE/Pong-v5"``, a class, or a function. How many env runners there are, ``scaling_config`` says.
            rl_config: what is around the algorithm. There is nothing to set.
            scaling_config: ``num_workers`` env runners, with ``resources_per_worker`` each. ``use_gpu`` is for the learners, and
                ``trainer_resources`` are those of the process that runs the algorithm.
            run_config: ``stop`` says when the training ends, e.g. ``{"training_iteration": 10}``. ``checkpoint_frequency`` says after how
                many iterations there is a checkpoint. Default: after each. The last one is saved too, unless ``checkpoint_at_end`` is
                False.
            datasets: ``{"train": ...}`` for algorithms that learn from recorded steps, such as ``"BC"``. It is written to Parquet first, which
                is what RLlib reads. Other algorithms take none.

        All other arguments are those of :class:`trainlib.DataParallelTrainer`.

        Raises:
            ImportError: RLlib or gymnasium is not installed.
            InvalidArgumentError: ``algorithm`` or ``config`` has the wrong type.
            ValueError: RLlib has no such algorithm, or the algorithm no such setting. Or it has no environment or no recorded steps to learn
                from, or would ignore these. Or it would run with TensorFlow or on RLlib's old API stack.
        """
        ROOM.require_installed()
        with tensorflow_left_alone():
            algorithm, config = checked(algorithm, config)
            _require_train_alone(datasets)
            require_steps(algorithm, config, datasets)
            require_env(algorithm, config, datasets)
            super().__init__(**ROOM.base_arguments(locals()))
            _ = self.settings.gang  # RLlib checks the settings

    @property
    def subject(self) -> Any:
        return (self.train_loop_config or {})["algorithm"]

    def bound_function(self) -> Callable[[], Any]:
        """The training function with all that it needs."""
        from trainlib.rl._train import train_algorithm

        config = {
            **(self.settings.train_loop_config or {}),
            "scaling_config": self.scaling_config.model_copy(update={"runtime_env": None}),
            "offline": bool(self.datasets),
        }
        return lambda: train_algorithm(config)


def _require_train_alone(datasets: Any) -> None:
    if isinstance(datasets, dict) and (other := datasets.keys() - {"train"}):
        raise ValueError(
            f"datasets has {', '.join(map(repr, sorted(other)))}, but RLTrainer reads 'train' alone: the steps that it learns from"
        )
