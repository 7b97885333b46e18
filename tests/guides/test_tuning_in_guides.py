"""Guide section: hyperparameter tuning."""


def test_three_values_times_five_samples(run_example):
    ran = run_example("tuning")
    assert ran.lines == ["3"]
    grid = ran.names["result_grid"]
    assert len(grid) == 15
    assert grid.num_errors == 0
    assert [result.metrics["output"] for result in grid] == [1, 2, 3] * 5
    assert all(len(result.metrics_dataframe) == 2 for result in grid)


def test_the_older_run_gives_the_best_config(run_example):
    ran = run_example("tuning_with_run")
    assert ran.lines == ["{'num_epochs': 2, 'input': 3}"]
    assert len(ran.names["analysis"].trials) == 3
