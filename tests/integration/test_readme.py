"""What the README shows is true."""

from __future__ import annotations

import re
from pathlib import Path

from trainlib import Checkpoint

ROOT = Path(__file__).parents[2]


def run_example(number: int | str) -> dict:
    """Run an example by its place, or by a word that only it has."""
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    if isinstance(number, str):
        (number,) = [place for place, example in enumerate(examples) if number in example]
    names = {"__name__": "__main__"}
    exec(compile(examples[number], "README.md", "exec"), names)
    return names


def test_the_first_example_runs(capfd):
    names = run_example(0)
    assert names["result"].metrics["loss"] == 1 / 3
    shown = capfd.readouterr().out.strip().splitlines()[-1]
    assert shown.startswith(f"{1 / 3} Checkpoint(local_path=")
    assert shown.endswith(names["result"].run_url)


def test_the_keras_example_runs():
    result = run_example(1)["result"]
    assert len(result.metrics_dataframe) == 3
    assert len(result.best_checkpoints) == 3


def test_the_horovod_example_runs():
    result = run_example("import horovod")["result"]
    assert len(result.metrics_dataframe) == 3


def test_the_boosted_trees_example_runs():
    names = run_example("XGBoostTrainer(")
    assert names["result"].metrics["valid-error"] < 0.1
    assert names["model"].num_boosted_rounds() == 20


def test_the_lightgbm_example_runs():
    names = run_example("LightGBMTrainer(")
    assert names["result"].metrics["valid-auc"] > 0.95
    assert names["model"].current_iteration() <= names["result"].metrics["training_iteration"] < 50


def test_the_scikit_learn_example_runs():
    names = run_example("SklearnTrainer(")
    assert names["result"].metrics["valid-auc"] > 0.9
    assert hasattr(names["estimator"], "coef_")


def test_the_transformers_example_runs():
    names = run_example("TransformersTrainer(")
    assert names["result"].metrics["eval_loss"] < 3.4  # at first, all of 32 tokens are as likely
    assert type(names["model"]).__name__ == "GPT2LMHeadModel"


def test_the_accelerate_example_runs(capsys):
    names = run_example("AccelerateTrainer(")
    assert names["result"].metrics["loss"] < 3.4
    assert "GPT2LMHeadModel" in capsys.readouterr().out


def test_the_reinforcement_learning_example_runs(capsys):
    names = run_example("RLTrainer(")
    assert names["result"].metrics["training_iteration"] == 2
    assert "PPO" in capsys.readouterr().out, "the module"


def test_the_lightning_example_runs():
    result = run_example("RayDDPStrategy()")["result"]
    assert result.metrics_dataframe["epoch"].tolist() == [0, 1]


def test_the_data_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_example('StandardScaler(columns=["x"])')
    assert names["result"].rows == {"train": [[50, 50], [50, 50]]}
    assert abs(names["prepared"]["x"].mean()) < 1e-9


def test_the_preprocess_example_runs(capfd):
    from trainlib.flows import _embedded as embedded

    embedded.start()
    embedded.wait()
    data = run_example("preprocess(")["data"]
    assert data.train_rows + data.validation_rows == 1797
    assert str(data.datasets) in capfd.readouterr().out


def test_the_sweep_runs():
    results = run_example("tune.Tuner")["results"]
    assert len(results) == 8
    assert results.num_errors == 0
    assert results.get_best_result().checkpoint is not None


def test_the_predictor_predicts():
    import pandas as pd

    from trainlib import Checkpoint

    load = run_example("def price_predictor")["price_predictor"]
    predict_batch = load(Checkpoint.from_dict({"weights": [10.0, 1.0]}))
    assert list(predict_batch(pd.DataFrame({"rooms": [1, 2], "area": [30, 50]}))["price"]) == [40.0, 70.0]


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("bench/*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_make_target_is_there():
    makefile = (ROOT / "Makefile").read_text()
    for page in ROOT.glob("*.md"):
        for target in re.findall(r"make ([a-z]+)", page.read_text()):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page.name} names make {target}"


def test_the_block_for_posts_is_created():
    from prefect.blocks.core import Block

    from trainlib.flows import _embedded as embedded

    embedded.start()
    embedded.wait()
    run_example("CustomWebhookNotificationBlock")
    assert Block.load("custom-webhook/team").url == "https://example.org/hooks/1"


def test_the_evaluation_example_runs():
    import pandas as pd
    import ray.data

    evaluate = run_example("def evaluate")["evaluate"]
    rows = ray.data.from_pandas(pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 5.0]}))
    assert evaluate(Checkpoint.from_dict({"w": 2.0}), rows) == {"error": 0.5}
