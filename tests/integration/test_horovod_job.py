"""Around a Horovod job: who may join it, what is taken down, and that its workers are used again."""

from __future__ import annotations

import os
import socket
import time

import pytest

from trainlib import ScalingConfig, TrainingFailedError, session
from trainlib.horovod import HorovodConfig, HorovodTrainer

TWO = ScalingConfig(num_workers=2)


def tells_where_it_listens() -> tuple[int, list[str]]:
    import horovod.torch as hvd
    import psutil

    hvd.init()
    hvd.barrier()
    own = psutil.Process().net_connections("inet")
    rendezvous = int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
    session.report({"rank": hvd.rank()})
    return rendezvous, [each.laddr.ip for each in own if each.status == "LISTEN" and each.laddr.port == rendezvous]


def test_on_one_machine_the_rendezvous_server_listens_on_loopback_alone_and_ends_with_the_training():
    (port, of_rank_0), (_, of_rank_1) = HorovodTrainer(tells_where_it_listens, scaling_config=TWO).fit().returned
    assert (of_rank_0, of_rank_1) == (["127.0.0.1"], [])
    assert not is_open(port)


def raises_with_its_port() -> None:
    raise ValueError(f"port={os.environ['HOROVOD_GLOO_RENDEZVOUS_PORT']}")


def test_the_rendezvous_server_ends_with_a_training_that_fails():
    with pytest.raises(TrainingFailedError, match=r"port=\d+") as caught:
        HorovodTrainer(raises_with_its_port, scaling_config=TWO).fit()
    assert not is_open(int(str(caught.value.__cause__).partition("=")[2]))


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def tells_its_process() -> tuple[int, float]:
    import horovod.torch as hvd
    import torch

    hvd.init()  # again, where the trainer has done it
    mean = hvd.allreduce(torch.tensor(float(hvd.rank()))).item()
    session.report({"mean": mean})
    return os.getpid(), mean


def test_workers_are_handed_on_to_the_next_job():
    first = HorovodTrainer(tells_its_process, scaling_config=TWO).fit()
    second = HorovodTrainer(tells_its_process, scaling_config=TWO, horovod_config=HorovodConfig(init="torch")).fit()
    assert {pid for pid, _ in first.returned} == {pid for pid, _ in second.returned}
    assert [mean for _, mean in first.returned + second.returned] == [0.5] * 4


def waits_for_the_other() -> None:
    import horovod.torch as hvd
    import torch

    hvd.init()
    if hvd.rank() == 1:
        time.sleep(60)
    hvd.allreduce(torch.zeros(1))


def test_a_stall_is_ended_in_time_although_it_would_be_logged_only_later():
    config = HorovodConfig(stall_shutdown_s=4)  # and stall_check_s is 60
    started = time.monotonic()
    with pytest.raises(TrainingFailedError, match="HorovodInternalError"):
        HorovodTrainer(waits_for_the_other, scaling_config=TWO, horovod_config=config).fit()
    assert time.monotonic() - started < 30


def test_settings_reach_the_job():
    def reads() -> dict[str, str]:
        session.report({"done": 1})
        return {name: value for name, value in os.environ.items() if name.startswith("HOROVOD_")}

    config = HorovodConfig(timeout_s=17, stall_check_s=3, stall_shutdown_s=9, verbose=2, placement_group_timeout_s=5)
    training = HorovodTrainer(reads, scaling_config=TWO, horovod_config=config)
    assert training.scaling_config.placement_timeout_s == 5
    of_rank_1 = training.fit().returned[1]
    assert (
        of_rank_1.items()
        >= {
            "HOROVOD_RANK": "1",
            "HOROVOD_SIZE": "2",
            "HOROVOD_LOCAL_RANK": "1",
            "HOROVOD_CROSS_SIZE": "1",
            "HOROVOD_GLOO_TIMEOUT_SECONDS": "17",
            "HOROVOD_STALL_CHECK_TIME_SECONDS": "3",
            "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS": "9",
            "HOROVOD_LOG_LEVEL": "info",
        }.items()
    )
