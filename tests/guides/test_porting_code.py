"""Guide sections: porting code, creating a trainer, customizing its backend, running it."""

import pytest
import torch


@pytest.mark.parametrize(
    "example", ["porting_plain_ddp_with_context", "porting_plain_ddp_with_local_rank", "porting_prepared"]
)
def test_a_ported_function_trains_like_one_process_on_all_the_data(run_example, example):
    ran = run_example(example)
    wrappers, seen, weights = zip(*ran.result.returned, strict=True)

    assert wrappers == ("DistributedDataParallel", "DistributedDataParallel")
    everything = ran.names["my_dataset"].tensors[0].flatten().tolist()
    assert len(seen[0]) == len(seen[1]) == 5 * 8
    for epoch in range(5):
        of_each = [rank[epoch * 8 : epoch * 8 + 8] for rank in seen]
        assert sorted(of_each[0] + of_each[1]) == everything

    alone = _trained_in_one_process(ran.names)
    for rank in range(2):
        for distributed, expected in zip(weights[rank], alone, strict=True):
            torch.testing.assert_close(distributed, expected, rtol=0, atol=1e-5)
    for of_rank_0, of_rank_1 in zip(*weights, strict=True):
        assert torch.equal(of_rank_0, of_rank_1)
    assert ran.result.metrics["epoch"] == 4


def _trained_in_one_process(names):
    features, targets = names["my_dataset"].tensors
    model = names["NeuralNetwork"]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(features), targets).backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def test_the_global_batch_size_is_that_of_a_worker_times_the_world_size(run_example):
    table = run_example("global_batch_size").result.metrics_dataframe
    assert table["global_batch_size"].tolist() == [8, 8, 8]
    assert table["trained_together"].tolist() == [8, 8, 8]


def test_a_trainer_joins_its_workers_into_one_process_group(run_example):
    result = run_example("creating_a_trainer").result
    assert result.metrics["world_size"] == 2
    assert result.returned == [0, 1]


def test_torch_backend_customizes_the_process_group(run_example):
    ran = run_example("customizing_the_backend")
    assert ran.result.returned == ["gloo", "gloo"]
    assert ran.result.metrics["world_size"] == 2
    assert ran.names["trainer"].backend_config.timeout_s == 60


def test_a_worker_knows_its_place(run_example):
    ran = run_example("training_context")
    assert sorted(ran.lines) == ["[rank 0] 0 of 2, 0 on its node", "[rank 1] 1 of 2, 1 on its node"]
    assert ran.result.metrics["rank"] == 0
