"""Room for an algorithm and for all actors that it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from trainlib.config import ScalingConfig

if TYPE_CHECKING:
    from trainlib._settings import TrainerSettings

__all__ = ["AlgorithmGang", "gang_of"]


class AlgorithmGang(ScalingConfig):
    """One worker, which runs the algorithm, and bundles for its env runners, evaluation env runners and learners.

    RLlib places them by their number: the algorithm in bundle 0, env runners in the following ones, and so on.

    Example:
        >>> gang = AlgorithmGang(resources_per_worker={"CPU": 1}, actors=[{"CPU": 1}, {"CPU": 0.5}])
        >>> gang.num_workers, gang.total_resources
        (1, {'CPU': 2.5})
    """

    actors: list[dict[str, float]] = Field(default=[], description="What each actor of the algorithm reserves.")

    @property
    def bundles(self) -> list[dict[str, float]]:
        """What Ray is asked to reserve."""
        return [dict(self.worker_resources), *map(dict, self.actors)]


def gang_of(settings: TrainerSettings, scaling: ScalingConfig) -> ScalingConfig:
    """The gang of a training: RLlib says what its algorithm needs.

    Raises:
        ValueError: RLlib does not take the settings.
    """
    from trainlib.rl._algorithms import algorithm_class, algorithm_config

    own = settings.train_loop_config or {}
    config = algorithm_config(
        own["algorithm"], own.get("config", {}), scaling, offline="train" if settings.datasets else None
    )
    config.placement_strategy = scaling.placement_strategy
    main, *actors = algorithm_class(own["algorithm"]).default_resource_request(config).bundles
    return AlgorithmGang(
        use_gpu=bool(main.get("GPU")),
        resources_per_worker={**main, **(scaling.trainer_resources or {})},
        placement_strategy=scaling.placement_strategy,
        placement_timeout_s=scaling.placement_timeout_s,
        runtime_env=scaling.runtime_env,
        actors=actors,
    )
