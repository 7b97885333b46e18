"""The datasets of one training. They are opened and fitted once, and split again for each attempt."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray
import ray.data
from ray.data.dataset import MaterializedDataset
from ray.util import placement_group_table

from trainlib._data.config import DataConfig
from trainlib._data.datasets import OpenDataset, open_dataset, require_rows
from trainlib._data.handing_out import coordinators_of, handed_out
from trainlib._data.manifest import saved_preprocessor
from trainlib._data.pipeline_errors import readable_errors
from trainlib._data.preprocessors import chained, fitted, is_fitted, require_columns, summarize
from trainlib._data.quiet import quiet, quieted
from trainlib._data.shard import DatasetShard
from trainlib._data.sources import Source
from trainlib._execution import liveness
from trainlib._execution.gang import reserving_no_cpu
from trainlib.config import ScalingConfig
from trainlib.errors import CapacityError

if TYPE_CHECKING:
    from ray.data.preprocessor import Preprocessor

# The most that a pipeline may keep in Ray's object store. Ray's own limit is a share of the machine's memory.
IN_FLIGHT = 512 * 1024**2


class Ingest:
    """Feeds a gang with data. An attempt calls ``open`` once Ray runs, then ``shards`` for its gang."""

    def __init__(
        self,
        datasets: dict[str, Any],
        *,
        sources: dict[str, Source],
        config: DataConfig,
        preprocessor: Preprocessor | None,
    ) -> None:
        self.preprocessor = preprocessor
        """Fitted once this is open."""
        self.applied: Preprocessor | None = preprocessor
        """Everything that was applied to the data, also before this training. Prediction has to apply it too, so it is
        saved with each checkpoint."""
        self.opened: dict[str, OpenDataset] = {}
        self._given = datasets
        self._sources = sources
        self._config = config
        self._session: str | None = None
        """The Ray that has the opened datasets."""

    def open(self, workers: int) -> Iterator[str]:
        """Open the datasets, and fit the preprocessor on ``train``. Does nothing the second time, unless Ray is another.

        Yields what a person should know of the wait.

        Raises:
            DataError: the data cannot be read, or has too few rows for the workers.
        """
        quiet()
        if not self.opened or self._session != liveness.session():
            self._session = liveness.session()
            opened = {name: self._opened(name, given) for name, given in self._given.items()}
            for name, each in opened.items():
                if each.facts.rows is not None and self._config.gives_rows_to_each(name):
                    require_rows(name, each.facts.source, each.facts.rows, workers)
            if self.preprocessor is not None and not is_fitted(self.preprocessor):
                yield f"fitting {summarize(self.preprocessor)} on train"
            self.opened = self._preprocessed(opened)
            before = saved_preprocessor(self._given.get("train"))
            self.applied = chained(before, self.preprocessor)

    def _opened(self, name: str, given: Any) -> OpenDataset:
        opened = open_dataset(name, given, self._sources.get(name))
        return replace(opened, dataset=quieted(opened.dataset))

    def leave_room_for_reading(self, scaling: ScalingConfig) -> ScalingConfig:
        """Resources for the workers that leave CPUs for reading.

        Workers hold their CPUs for as long as they train. A pipeline that gets no CPU would wait forever, and the
        workers would wait for the pipeline. On a local Ray, where CPUs are only counted, workers that did not ask for
        CPUs therefore reserve none.

        Raises:
            CapacityError: the cluster has too few CPUs for workers and reading.
        """
        streamed = [name for name, each in self.opened.items() if self._is_streamed(each)]
        # Two datasets may be read in turns, e.g. validation in the middle of an epoch. Each needs a CPU then.
        needed = min(2, len(streamed))
        total = ray.cluster_resources().get("CPU", 0.0)
        taken = scaling.total_resources.get("CPU", 0.0)
        if taken + needed <= total or not needed:
            return scaling
        if needed <= total and (without_cpus := reserving_no_cpu(scaling)) is not None:
            return without_cpus
        names = " and ".join(map(repr, streamed))
        raise CapacityError(
            f"{scaling.num_workers} worker(s) take {taken:g} of the cluster's {total:g} CPUs, and reading {names} at the same "
            f"time needs {needed} more. Lower num_workers, give each worker less with resources_per_worker={{'CPU': ...}}, "
            "or pass materialized Ray Datasets"
        )

    def lacks_cpu(self, asked: float = 0.0) -> str | None:
        """What is wrong if the gangs on the cluster hold all CPUs, so that none is left for reading; None if nothing is.

        Args:
            asked: CPUs of a gang that is still to be reserved.
        """
        if not any(self._is_streamed(each) for each in self.opened.values()):
            return None
        groups = [group for group in placement_group_table().values() if group["state"] == "CREATED"]
        held = sum(bundle.get("CPU", 0.0) for group in groups for bundle in group["bundles"].values())
        total = ray.cluster_resources().get("CPU", 0.0)
        if held + asked + 1 <= total:
            return None
        return (
            f"{len(groups)} training(s) hold {held:g} of the cluster's {total:g} CPUs, "
            + (f"this one asks for {asked:g}, " if asked else "")
            + "and none is left for reading data"
        )

    def _is_streamed(self, opened: OpenDataset) -> bool:
        return not isinstance(opened.dataset, MaterializedDataset)

    def _preprocessed(self, opened: dict[str, OpenDataset]) -> dict[str, OpenDataset]:
        preprocessor = self.preprocessor
        if preprocessor is None:
            return opened
        for each in opened.values():
            if each.facts.columns is not None:
                require_columns(
                    preprocessor, each.facts.columns, f"the dataset {each.facts.name!r} ({each.facts.source})"
                )
        if not is_fitted(preprocessor):
            with readable_errors("the dataset 'train'"):
                preprocessor = fitted(preprocessor, opened["train"].dataset)
        self.preprocessor = preprocessor
        return {name: OpenDataset(preprocessor.transform(each.dataset), each.facts) for name, each in opened.items()}

    @contextmanager
    def shards(
        self, nodes: Sequence[str], scaling: ScalingConfig, actors: Sequence[Any]
    ) -> Iterator[list[dict[str, DatasetShard]]]:
        """The shards of each rank, valid inside the block. ``nodes`` are the node ids by rank, ``actors`` the workers."""
        datasets = {name: self._with_options(name, each.dataset, scaling) for name, each in self.opened.items()}
        parts = handed_out(self._config, datasets, nodes, actors)
        coordinators = coordinators_of(parts)
        try:
            for coordinator in coordinators:
                coordinator.__ray_call__.remote(_quiet_process)  # it logs each epoch
            yield [
                {
                    name: DatasetShard(name, part, may_be_empty=self._may_be_empty(name), is_whole=self._is_whole(name))
                    for name, part in of_rank.items()
                }
                for of_rank in parts
            ]
        finally:
            if liveness.answers(self._session):
                for coordinator in coordinators:
                    ray.kill(coordinator)

    def _may_be_empty(self, name: str) -> bool:
        """Whether a worker may get no rows, which is otherwise taken for a mistake."""
        return self._config.is_custom or (self._config.splits(name) and not self._config.equal)

    def _is_whole(self, name: str) -> bool:
        """Whether every worker gets all rows."""
        return not self._config.is_custom and not self._config.splits(name)

    def _with_options(self, name: str, dataset: ray.data.Dataset, scaling: ScalingConfig) -> ray.data.Dataset:
        """A copy of the dataset, limited to the resources that the gang leaves."""
        from ray.data import ExecutionResources

        dataset = dataset.copy(dataset, _deep_copy=True)  # the user's own dataset keeps its settings
        options = copy.deepcopy(self._config.options_for(name) or dataset.context.execution_options)
        if options.resource_limits == ExecutionResources.for_limits():
            left = ray.cluster_resources().get("CPU", 0.0) - scaling.total_resources.get("CPU", 0.0)
            others = 1 if len(self.opened) > 1 else 0
            options.resource_limits = ExecutionResources.for_limits(
                cpu=max(1.0, left - others), object_store_memory=IN_FLIGHT
            )
        dataset.context.execution_options = options
        return dataset


def _quiet_process(actor: Any) -> None:
    quiet()
