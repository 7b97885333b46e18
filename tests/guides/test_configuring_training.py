"""Guide sections: configuring training, reporting intermediate results."""


def test_a_training_function_may_take_the_config_or_nothing(run_example):
    without, with_config = run_example("configuring").results
    assert without.metrics["parameters"] == 0
    assert (with_config.metrics["parameters"], with_config.metrics["settings"]) == (1, 0)


def test_the_config_reaches_the_training_function_that_calls_session(example):
    ran = example("configuring_with_session")
    assert ran.lines[0] == "1"
    assert ran.result.metrics_dataframe["epoch"].tolist() == [0, 1]


def test_the_config_reaches_the_training_function_that_calls_train(run_example):
    ran = run_example("configuring_with_train")
    assert ran.lines == ["1"]
    assert ran.result.metrics_dataframe["epoch"].tolist() == [0, 1]


def test_only_what_rank_0_reports_is_used(run_example):
    result = run_example("reporting").result
    assert result.metrics_dataframe["result"].tolist() == [1, 2, 3]
