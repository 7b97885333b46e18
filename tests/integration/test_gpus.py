"""GPUs: which of them a worker sees, and which one is its own. Ray is told of GPUs that this machine does not have."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.integration.extra_nodes import extra_nodes
from tests.longest import LONGEST_S
from trainlib import DataParallelTrainer, ScalingConfig, session, tune
from trainlib.execution import Backend, BackendConfig
from trainlib.torch import TorchTrainer


class _Sharing(Backend):
    share_cuda_visible_devices = True


class SharingConfig(BackendConfig):
    """Shares GPUs as torch does, and has workers that start in a third of the time."""

    @property
    def backend_cls(self):
        return _Sharing


def gpus(per_worker: float) -> ScalingConfig:
    return ScalingConfig(num_workers=2, use_gpu=True, resources_per_worker={"CPU": 1, "GPU": per_worker})


def seen() -> tuple[int, list[str], list[int]]:
    """This rank's place on its node, what it sees, and which of that is its own."""
    import ray

    from trainlib._execution.gpus import indices_of

    visible = os.environ["CUDA_VISIBLE_DEVICES"]
    own = ray.get_runtime_context().get_accelerator_ids()["GPU"]
    return session.get_local_rank(), visible.split(","), indices_of(own, visible)


def in_a_trial(config):
    folder = Path(config["folder"])
    (folder / f"{config['trial']}-{session.get_world_rank()}").touch()
    deadline = time.monotonic() + LONGEST_S
    while len(list(folder.iterdir())) < config["ranks"]:  # all have their GPUs at the same time
        assert time.monotonic() < deadline
        time.sleep(0.05)
    session.report({"done": 1, "seen": len(seen()[1])})
    (folder / f"{config['trial']}-{session.get_world_rank()}").write_text(repr(seen()))


def in_torch():
    import torch

    from trainlib.torch import get_device, get_devices, prepare_model

    assert get_device() == torch.device("cpu")  # what prepare_model has to use here
    prepare_model(torch.nn.Linear(1, 1))
    torch.cuda.is_available = lambda: True  # nobody else uses this worker
    return seen(), str(get_device()), list(map(str, get_devices()))


def test_ranks_of_a_node_share_their_gpus_and_find_their_own(tmp_path):
    with extra_nodes([8], gpus=7):
        tune.Tuner(
            DataParallelTrainer(
                in_a_trial,
                train_loop_config={"folder": str(tmp_path), "ranks": 6},
                backend_config=SharingConfig(),
            ),
            param_space={
                "train_loop_config": {"trial": tune.grid_search(["one", "another", "half"])},
                "scaling_config": tune.sample_from(
                    lambda spec: gpus(0.5 if spec.config.train_loop_config.trial == "half" else 1)
                ),
            },
        ).fit()
        of_torch = TorchTrainer(in_torch, scaling_config=gpus(2)).fit().returned

    trials = {
        name: [eval((tmp_path / f"{name}-{rank}").read_text()) for rank in (0, 1)]
        for name in ("one", "another", "half")
    }
    for name in ("one", "another"):
        visible = trials[name][0][1]
        assert len(visible) == 2, "the trial's own GPUs, and no others"
        assert trials[name] == [(0, visible, [0]), (1, visible, [1])], "so that the GPU of a rank is cuda:{local_rank}"
    taken = [trials[name][0][1] for name in trials]
    assert len({gpu for visible in taken for gpu in visible}) == 5, "two trials on one node do not share any"
    assert [own for _, _, own in trials["half"]] == [[0], [0]], "both ranks use one GPU"

    (first, *of_first), (second, *of_second) = of_torch
    assert first == (0, first[1], [0, 1])
    assert second == (1, first[1], [2, 3])
    assert of_first == ["cuda:0", ["cuda:0", "cuda:1"]]
    assert of_second == ["cuda:2", ["cuda:2", "cuda:3"]]
