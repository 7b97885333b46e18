"""Guide sections: porting code, creating a trainer, customizing its backend, running it."""

import pytest
import torch


@pytest.fixture
def ran(example):
    return example("porting")


@pytest.mark.parametrize("guide", ["001", "002"])
@pytest.mark.parametrize("side", ["before", "after"])
def test_both_sides_of_a_porting_diff_train_like_one_process_on_all_the_data(ran, side, guide):
    """Without ``prepare_model`` and ``prepare_data_loader`` too: the guides say that it still works."""
    returned = [rank[f"{side}_{guide}"] for rank in ran.result.returned]
    wrappers, seen, weights = zip(*returned, strict=True)

    assert wrappers == ("DistributedDataParallel", "DistributedDataParallel")
    assert len(seen[0]) == len(seen[1]) == 8
    assert sorted(seen[0] + seen[1]) == ran.names["my_dataset"].tensors[0].flatten().tolist()

    alone = _trained_in_one_process(ran.names)
    for rank in range(2):
        for distributed, expected in zip(weights[rank], alone, strict=True):
            torch.testing.assert_close(distributed, expected, rtol=0, atol=1e-5)
    for of_rank_0, of_rank_1 in zip(*weights, strict=True):
        assert torch.equal(of_rank_0, of_rank_1)


def _trained_in_one_process(names):
    features, targets = names["my_dataset"].tensors
    model = names["NeuralNetwork"]()
    names["step"](model, features, targets)
    return [parameter.detach() for parameter in model.parameters()]


def test_the_global_batch_size_is_that_of_a_worker_times_the_world_size(ran):
    assert ran.result.metrics["global_batch_size"] == ran.result.metrics["by_the_first"] == 16


def test_torch_backend_customizes_the_process_group(run_example):
    ran = run_example("customizing_the_backend")
    assert ran.result.returned == ["gloo", "gloo"]
    assert ran.result.metrics["world_size"] == 2
    assert ran.names["trainer"].backend_config.timeout_s == 60
