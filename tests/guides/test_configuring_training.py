"""Guide sections: configuring training, reporting intermediate results."""

import pytest


@pytest.mark.parametrize("example", ["configuring_with_session", "configuring_with_train"])
def test_the_config_reaches_the_training_function(run_example, example):
    ran = run_example(example)
    assert ran.lines == ["1"]
    assert ran.result.metrics_dataframe["epoch"].tolist() == [0, 1]


def test_only_what_rank_0_reports_is_used(run_example):
    ran = run_example("reporting")
    assert ran.lines == ["3"]
    assert ran.result.metrics_dataframe["result"].tolist() == [1, 2, 3]
