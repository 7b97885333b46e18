"""Guide section: hyperparameter tuning."""

from trainlib import session, sgd, tune


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


class Heard(sgd.SGDCallback):
    def __init__(self) -> None:
        self.outputs: list[list[int]] = []

    def handle_result(self, results, **info):
        self.outputs.append([result["output"] for result in results])


def test_the_same_function_runs_with_raysgd_alone_and_with_tune_and_its_model_is_what_it_saves():
    def training_func(config):
        sgd.report(output=config["input"], workers=sgd.world_size(), resources=session.get_trial_resources())
        sgd.save_checkpoint(model=config["input"] * 10)
        return "returned"

    trainer = sgd.Trainer(backend="torch", num_workers=2, resources_per_worker={"CPU": 0.5})
    trainer.start()
    of_run, of_tune = Heard(), Heard()
    assert trainer.run(training_func, config={"input": 5}, callbacks=[of_run]) == ["returned", "returned"]
    trainer.shutdown()
    trainable = trainer.to_tune_trainable(training_func)
    analysis = tune.run(trainable, config={"input": tune.grid_search([1, 2])}, callbacks=[of_tune])
    best = analysis.get_best_trial(metric="output", mode="max")
    assert best.checkpoint.to_dict()["model"] == 20
    assert "returned" not in best.metrics.values()
    assert [(trial.metrics["workers"], trial.metrics["resources"]["CPU"]) for trial in analysis.trials] == [(2, 1)] * 2
    assert of_run.outputs == [[5, 5]], "the callbacks of a run are not those of a sweep"
    assert sorted(of_tune.outputs) == [[1, 1], [2, 2]], "which may have some too"


def test_a_function_is_tuned_with_data_and_resources_of_its_own():
    def train_func(config, data):
        return {"total": config["factor"] * sum(data), "cpus": tune.get_context().get_trial_resources()["CPU"]}

    trainable = tune.with_resources(tune.with_parameters(train_func, data=[1, 2]), {"cpu": 2})
    results = tune.Tuner(trainable, param_space={"factor": tune.grid_search([1, 10])}).fit()
    assert [(result.metrics["total"], result.metrics["cpus"]) for result in results] == [(3, 2), (30, 2)]
