"""Guide sections: automatic mixed precision, reproducibility."""

import torch

from trainlib._registry.client import connect
from trainlib._registry.store import current_store


def test_a_model_is_trained_in_mixed_precision(run_example):
    result = run_example("mixed_precision").result

    assert [rank["computed_in"] for rank in result.returned] == ["torch.bfloat16", "torch.bfloat16"]
    assert [rank["outputs"] for rank in result.returned] == ["torch.float32", "torch.float32"]
    weights = [rank["weights"] for rank in result.returned]
    assert weights[0].dtype == torch.float32
    assert torch.equal(*weights)
    table = result.metrics_dataframe
    assert table["epoch"].tolist() == list(range(90))
    assert table["loss"].iloc[-1] < table["loss"].iloc[0]


def test_a_reproducible_training_gives_the_same_numbers_again(run_example):
    results = [run_example("reproducibility").result for _ in range(2)]
    assert connect(current_store()).get_run(results[0].run_id).data.tags["trainlib.seeds"] == '{"0": 0, "1": 0}'
    first, second = (result.metrics_dataframe for result in results)
    for name in ("loss", "numpy", "python"):
        assert first[name].tolist() == second[name].tolist()
        assert first[name].nunique() == 3
