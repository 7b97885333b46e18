"""What a SklearnTrainer takes, and what it refuses before anything starts."""

from __future__ import annotations

import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from pydantic import TypeAdapter, ValidationError
from ray.data.preprocessors import UniformKBinsDiscretizer
from sklearn.cluster import DBSCAN, KMeans
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer, max_error
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from xgboost import XGBClassifier

from trainlib import DataConfig, ScalingConfig, trainable, tune
from trainlib import _rooms as rooms
from trainlib._serving.arrays import without_arrow
from trainlib._trainer_form import TrainerChoice
from trainlib._training.opening import fingerprint_of
from trainlib.errors import DataError, InvalidArgumentError
from trainlib.flows import TrainSpec
from trainlib.sklearn import SklearnCheckpoint, SklearnTrainer, _served
from trainlib.sklearn._arguments import require_classes, scorers_by_name
from trainlib.sklearn._fit import _cross_validated, _scores, _split
from trainlib.tune import Tuner

ROWS = pd.DataFrame({"x": range(6), "y": [0, 0, 0, 1, 1, 1]})
PIPELINE = Pipeline([("lr", LogisticRegression())])
GOOD = {"estimator": RandomForestClassifier(), "label_column": "y", "datasets": {"train": ROWS}}


@trainable
class Deep(LogisticRegression):
    """An estimator that cannot be made without an argument."""

    def __init__(self, depth):
        super().__init__()
        self.depth = depth


class Untagged:
    """Like an estimator, but scikit-learn cannot tell what it is for."""

    def fit(self, rows, labels):
        return self

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def score(self, rows, labels):
        return 0.5


class Unscored(Untagged):
    score = None


@pytest.mark.parametrize(
    ("changes", "error", "why"),
    [
        ({"estimator": None}, InvalidArgumentError, "estimator is missing. Pass an estimator"),
        ({"estimator": "forest"}, InvalidArgumentError, "estimator is a str, which scikit-learn cannot fit"),
        ({"estimator": RandomForestClassifier}, InvalidArgumentError, r"Pass an instance: RandomForestClassifier\(\)"),
        (
            {"label_column": "z"},
            DataError,
            "'train' has no column 'z'. label_column must be one of 'x', 'y'",
        ),
        ({"datasets": {"test": ROWS}}, ValueError, "learns from the dataset 'train', but the datasets are 'test'"),
        ({"datasets": None}, ValueError, "learns from the dataset 'train'. No datasets were given"),
        ({"datasets": {"train": ROWS, "cv": ROWS}}, ValueError, "'cv' is where the scores of cross-validation go"),
        ({"scoring": "acuracy"}, ValueError, "scikit-learn has no scorer 'acuracy'. It has accuracy, "),
        ({"scoring": {"a": "accuracy", "b": "auc"}}, ValueError, "scikit-learn has no scorer 'auc'"),
        ({"scoring": [3]}, InvalidArgumentError, "scoring contains an int"),
        ({"scoring": []}, ValueError, "scoring is empty"),
        (
            {"scoring": [make_scorer(max_error)]},
            ValueError,
            "scoring contains a _Scorer, which has no name for its metric. Pass a dict of names and functions",
        ),
        (
            {"scoring": [lambda *_: 1.0, lambda *_: 2.0]},
            ValueError,
            "scoring has '<lambda>' twice, and their metrics would have one name. Pass a dict of names and functions",
        ),
        ({"cv": 1}, InvalidArgumentError, "pass 2 folds or more"),
        ({"cv": "five"}, InvalidArgumentError, "cv is a str: pass a number of folds"),
        ({"parallelize_cv": "yes"}, InvalidArgumentError, "parallelize_cv is 'yes': pass True or False"),
        ({"params": {"depth": 3}}, ValueError, "RandomForestClassifier has no parameter 'depth'; it has .*max_depth"),
        (
            {"estimator": PIPELINE, "params": {"lr__CC": 3}},
            ValueError,
            "params: Invalid parameter 'CC' for estimator LogisticRegression",
        ),
        (
            {"estimator": PIPELINE, "params": {"lr__C__d": 3}},
            ValueError,
            r"params: Pipeline does not take 'lr__C__d' \(.*\)",
        ),
        (
            {"datasets": {"train": ROWS.assign(y=[0.5, 1.5, 2.5, 3.5, 4.5, 5.5])}},
            DataError,
            "RandomForestClassifier is a classifier, but the label 'y' of the dataset 'train' has continuous values",
        ),
        ({"fit_params": {"weights": 3}}, ValueError, r"RandomForestClassifier.fit\(\) has no argument 'weights'"),
        ({"fit_params": [1]}, InvalidArgumentError, "fit_params is a list: pass a dict"),
        ({"weights": 3}, ValueError, r"RandomForestClassifier.fit\(\) has no argument 'weights'"),
        ({"sample_weight": 1, "fit_params": {"sample_weight": 1}}, ValueError, "sample_weight is passed twice"),
        ({"labels_column": "y"}, InvalidArgumentError, "has no argument 'labels_column'. Did you mean 'label_column'"),
        (
            {"estimator": DBSCAN(), "label_column": None, "datasets": {"train": ROWS, "valid": ROWS}},
            ValueError,
            r"datasets has 'valid', but DBSCAN has no score\(\) to score it with",
        ),
        (
            {
                "estimator": KMeans(),
                "label_column": None,
                "datasets": {"train": ROWS, "valid": ROWS},
                "scoring": {"auc": "roc_auc"},
            },
            ValueError,
            "scoring names 'roc_auc', which compares predictions with labels",
        ),
        *(
            (
                {"estimator": estimator, "label_column": None},
                InvalidArgumentError,
                f"label_column is missing, but {type(estimator).__name__} learns from labels. Pass the name of the column",
            )
            for estimator in (
                LogisticRegression(),
                PIPELINE,
                GridSearchCV(LinearRegression(), {}),
                Untagged(),
                LGBMClassifier(),
            )
        ),
        (
            {"estimator": Untagged(), "cv": 2},
            InvalidArgumentError,
            "cannot cross-validate Untagged, because it has no tags",
        ),
        (
            {"estimator": KMeans(2), "label_column": None, "scoring": "accuracy", "cv": 2},
            ValueError,
            "scoring names 'accuracy', which compares predictions with labels",
        ),
        (
            {"estimator": Unscored(), "datasets": {"train": ROWS, "valid": ROWS}},
            ValueError,
            r"datasets has 'valid', but Unscored has no score\(\) to score it with",
        ),
        ({"scaling_config": ScalingConfig(num_workers=2)}, ValueError, r"num_workers is 2, but .* one process"),
        (
            {"scaling_config": {"trainer_resources": {"CPU": 2}, "resources_per_worker": {"CPU": 2}}},
            ValueError,
            "which are the same for a SklearnTrainer",
        ),
        ({"resume_from_checkpoint": "/tmp"}, ValueError, "cannot start from a checkpoint"),
    ],
)
def test_bad_input_is_named_before_anything_starts(changes, error, why):
    with pytest.raises(error, match=why):
        SklearnTrainer(**{**GOOD, **changes})


def test_a_file_without_the_label_is_named_before_anything_starts(tmp_path):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    trainer = SklearnTrainer(RandomForestClassifier(), label_column="z", datasets={"train": str(tmp_path / "rows.csv")})
    with pytest.raises(DataError, match=r"'train' \(.*rows.csv\) has no column 'z'. label_column must be one of"):
        trainer.inspect()


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(rooms, "find_spec", lambda package: None)
    with pytest.raises(ImportError, match=r"SklearnTrainer needs sklearn: pip install 'trainlib\[sklearn\]'"):
        SklearnTrainer(**GOOD)


def test_its_arguments_survive_copies_and_go_where_a_config_goes():
    estimator = RandomForestClassifier(n_estimators=3)
    trainer = SklearnTrainer(
        **{**GOOD, "estimator": estimator}, scaling_config=ScalingConfig(trainer_resources={"CPU": 4}), cv=GroupKFold(2)
    )
    assert trainer.scaling_config.bundles == [{"CPU": 4.0}], "what the trainer gets is what its one process gets"
    copied = trainer.copy_with(params={"max_depth": 2})
    assert copied.scaling_config == trainer.scaling_config
    assert copied.train_loop_config["estimator"] is estimator
    assert copied.train_loop_config["params"] == {"max_depth": 2}
    assert not trainer.copy_with(dataset_config=DataConfig()).dataset_config.splits("train"), "the order of rows counts"
    digests = [fingerprint_of(each, {}).config for each in (trainer, trainer.copy_with(), copied)]
    assert digests[0] == digests[1] != digests[2]
    plan = Tuner(trainer, param_space={"params": {"max_depth": tune.grid_search([1, 2])}}).plan
    assert plan.trainable.trainer({"params": {"max_depth": 1}}, {}).train_loop_config["params"] == {"max_depth": 1}
    for estimator in (KMeans(2), make_pipeline(StandardScaler(), KMeans(2)), IsolationForest()):
        SklearnTrainer(estimator, datasets={"train": ROWS})  # some need no labels
    SklearnTrainer(KMeans(2), datasets={"train": ROWS, "valid": ROWS})
    SklearnTrainer(LogisticRegression(), datasets={"train": ROWS}, fit_params={"y": [0, 1] * 3})
    weighted = SklearnTrainer(**GOOD, fit_params={"sample_weight": [1] * 6}).train_loop_config
    assert SklearnTrainer(**GOOD, sample_weight=[1] * 6).train_loop_config == weighted, "as Ray's trainer takes it"


def test_a_form_describes_it_and_makes_nothing_but_estimators():
    choice = TypeAdapter(TrainerChoice)
    typed = {
        "kind": "sklearn",
        "estimator": "sklearn.ensemble:RandomForestClassifier",
        "params": {"max_depth": 3},
        "scoring": {"auc": "roc_auc"},
        "cv": 3,
        "return_train_score_cv": True,
        "parallelize_cv": "no",
        "set_estimator_cpus": False,
        "fit_params": {"sample_weight": [1, 1, 1, 1, 2, 2]},
    }
    form = choice.validate_python(typed).with_target("y")
    made = SklearnTrainer(**form.arguments(), datasets={"train": ROWS})
    assert isinstance(made.train_loop_config["estimator"], RandomForestClassifier)
    own = ("scoring", "return_train_score_cv", "parallelize_cv", "set_estimator_cpus")
    assert [made.train_loop_config[name] for name in own] == [{"auc": "roc_auc"}, True, False, False]
    assert made.train_loop_config["fit_params"] == typed["fit_params"]
    plain = choice.validate_python({"kind": "sklearn", "estimator": typed["estimator"]}).arguments()
    chosen = {name for name, value in plain.items() if value is not None}
    assert chosen == {"estimator", "params"}, "what nobody chooses is the trainer's default"
    shown = TrainSpec.of(made).trainer.model_dump()
    assert shown["estimator"].endswith(":RandomForestClassifier")
    assert {**shown, "estimator": typed["estimator"]} == {**typed, "label_column": "y"}
    with pytest.raises(ValidationError, match="estimator"):
        choice.validate_python({"kind": "sklearn"})
    for path, why in {
        "os:system": "not marked",
        "sklearn.ensemble:Forest": "cannot be loaded",
        "sklearn.metrics:get_scorer": "which is not an estimator class",
        f"{__name__}:RandomForestClassifier": "not marked",
        "sklearn.pipeline:Pipeline": "which needs steps. .*subclass with defaults, marked with @trainlib.trainable",
        f"{__name__}:Deep": "which needs depth. .*put it into params",
    }.items():
        with pytest.raises(ValueError, match=why):
            choice.validate_python({**typed, "estimator": path}).arguments()
    deep = choice.validate_python({"kind": "sklearn", "estimator": f"{__name__}:Deep", "params": {"depth": 4}})
    assert deep.arguments()["estimator"].depth == 4


def test_columns_beside_a_column_of_arrays_are_named_instead_of_ignored():
    rows = pd.DataFrame({"emb": [[0.0, 1.0], [1.0, 0.0]], "age": [30, 40], "y": [0, 1]})
    with pytest.raises(
        DataError, match=r"'train' has the column 'emb' of arrays, .*'age' would be ignored.*Concatenator"
    ):
        _split(rows, "y", "train")
    with pytest.raises(DataError, match="'age', 'y' would be ignored"):
        _split(rows, None, "train")
    features, labels = _split(rows.drop(columns="age"), "y", "train")
    assert (features.tolist(), labels.tolist()) == ([[0.0, 1.0], [1.0, 0.0]], [0, 1])


def test_a_classifier_takes_labels_that_a_preprocessor_makes_and_a_regressor_any():
    continuous = {"train": ROWS.assign(y=ROWS["x"] + 0.5)}
    SklearnTrainer(**{**GOOD, "estimator": LinearRegression(), "datasets": continuous})
    SklearnTrainer(**{**GOOD, "datasets": continuous}, preprocessor=UniformKBinsDiscretizer(["y"], bins=2))
    SklearnTrainer(**{**GOOD, "datasets": {"train": ROWS.assign(y=["a", "b", "a", "b", None, "a"])}})


def test_labels_may_be_arrows_as_ray_reads_them():
    of_arrow = ROWS.astype({"y": "double[pyarrow]"})
    SklearnTrainer(**{**GOOD, "datasets": {"train": of_arrow}})
    require_classes(of_arrow["y"], LogisticRegression(), "y", "the dataset 'train'")
    with pytest.raises(DataError, match=r"has continuous values, e.g. 0\.5\. Use a regressor"):
        require_classes(of_arrow["y"] + 0.5, LogisticRegression(), "y", "the dataset 'train'")


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(OneHotEncoder(), LogisticRegression()),
        LGBMClassifier(n_estimators=2, min_child_samples=1, verbose=-1),
    ],
    ids=["encoder", "lightgbm"],
)
def test_a_model_predicts_from_rows_of_arrows(estimator):
    """As ``predict`` gives them to it: with gaps that are no NaN, and types that not all estimators know."""
    is_text = isinstance(estimator, Pipeline)
    rows = pd.DataFrame({"x": ["a", "b", None] * 10} if is_text else {"x": [1.5, 2.5, None] * 10}, index=range(5, 35))
    fitted = estimator.fit(rows, [0, 1, 1] * 10)
    saved = SklearnCheckpoint.from_estimator(fitted)
    of_arrow = rows.convert_dtypes(dtype_backend="pyarrow")
    assert str(of_arrow.dtypes["x"]) == ("string[pyarrow]" if is_text else "double[pyarrow]")
    assert _served.load(saved.path)(of_arrow).tolist() == fitted.predict(rows).tolist()
    plain = without_arrow(of_arrow)
    assert plain.index.equals(rows.index)
    assert plain.dtypes.equals(rows.dtypes)


@pytest.mark.parametrize("kind", [LGBMClassifier, XGBClassifier, HistGradientBoostingClassifier])
def test_a_request_for_one_row_may_have_a_null(kind):
    rows = pd.DataFrame({"x": [1.5, 2.5, None] * 10, "z": range(30)})
    fitted = kind(**({"verbose": -1} if kind is LGBMClassifier else {})).fit(rows, [0, 1, 1] * 10)
    saved = SklearnCheckpoint.from_estimator(fitted)
    predict = _served.load(saved.path)
    assert (
        predict(pd.DataFrame({"x": [None], "z": [5]})).tolist() == fitted.predict(rows.iloc[[2]].assign(z=5)).tolist()
    )


def test_an_estimator_without_labels_scores_rows_alone():
    groups = KMeans(2, random_state=0).fit(ROWS)
    assert _scores(groups, ROWS, None, None) == ({"score": groups.score(ROWS)}, True)
    assert _scores(groups, ROWS, None, with_labels) == ({"with_labels": 6.0}, True)
    for scoring in (with_labels, {"size": with_labels}):
        folds = _cross_validated(groups, ROWS, None, None, {"scoring": scoring, "cv": 2}, {}, 1)
        assert folds["test_score" if callable(scoring) else "test_size"] == [3.0, 3.0], "as datasets are scored"


def with_labels(estimator, rows, labels):
    return len(rows)


def test_a_score_is_called_so_on_datasets_as_in_folds():
    fitted, rows = LogisticRegression().fit(ROWS[["x"]], ROWS["y"]), (ROWS[["x"]], ROWS["y"])
    for scoring in (None, with_labels, "accuracy", {"size": with_labels}, lambda *_: {"size": 6.0}):
        scores, is_single = _scores(fitted, *rows, scoring)
        folds = _cross_validated(fitted, *rows, None, {"scoring": scoring, "cv": 2}, {}, 1)
        assert ("test_score" in folds) is is_single
        assert is_single or [*scores] == ["size"]


def test_an_estimator_that_scikit_learn_cannot_tell_is_fitted_and_scored():
    trainer = SklearnTrainer(**{**GOOD, "estimator": Untagged(), "datasets": {"train": ROWS, "valid": ROWS}})
    assert _scores(trainer.train_loop_config["estimator"], ROWS[["x"]], ROWS["y"], None) == ({"score": 0.5}, True)


def test_a_checkpoint_has_the_estimator(tmp_path):
    fitted = LinearRegression().fit([[1.0], [2.0]], [2.0, 4.0])
    for saved in (
        SklearnCheckpoint.from_estimator(fitted),
        SklearnCheckpoint.from_estimator(fitted, path=tmp_path / "here"),
    ):
        assert saved.get_estimator().predict([[3.0]])[0] == pytest.approx(6.0)
        assert saved.get_model().coef_[0] == pytest.approx(2.0)
    assert SklearnCheckpoint.from_directory(tmp_path / "here").get_model().coef_[0] == pytest.approx(2.0)


def test_functions_in_a_list_name_their_metrics_in_every_attempt():
    def profit(estimator, rows, labels):
        return 7.0

    scoring = ["accuracy", profit]
    SklearnTrainer(**GOOD, scoring=scoring)
    fitted = LogisticRegression().fit(ROWS[["x"]], ROWS["y"])
    scores = _scores(fitted, ROWS[["x"]], ROWS["y"], scorers_by_name(scoring))
    assert scores == ({"accuracy": fitted.score(ROWS[["x"]], ROWS["y"]), "profit": 7.0}, False)
    folds = _cross_validated(fitted, ROWS[["x"]], ROWS["y"], None, {"scoring": scoring, "cv": 3}, {}, 1)
    assert folds["test_profit"] == [7.0] * 3
    assert len(folds["test_accuracy"]) == 3


@pytest.mark.parametrize("estimator", [LinearRegression(), LogisticRegression()], ids=["regressor", "classifier"])
def test_columns_may_have_numbers_for_names_as_those_of_an_array(estimator):
    rows = pd.DataFrame([[0.0, 1.0, 2.0, 0], [1.0, 0.0, 2.0, 1]])
    SklearnTrainer(estimator, label_column="3", datasets={"train": rows, "valid": rows})
    with pytest.raises(DataError, match=r"'train' has no column '4'\. label_column must be one of '0', '1', '2', '3'"):
        SklearnTrainer(estimator, label_column="4", datasets={"train": rows})


def test_a_preprocessor_may_make_the_label_of_files_and_of_dataframes(tmp_path):
    ROWS.drop(columns="y").to_csv(tmp_path / "rows.csv", index=False)
    discretizer = UniformKBinsDiscretizer(["x"], bins=2, output_columns=["y"])
    for rows in (ROWS.drop(columns="y"), str(tmp_path / "rows.csv")):
        given = {**GOOD, "datasets": {"train": rows}}
        SklearnTrainer(**given, preprocessor=discretizer).inspect()
        with pytest.raises(DataError, match=r"has no column 'y'\. label_column must be one of 'x'"):
            SklearnTrainer(**given).inspect()
    with pytest.raises(InvalidArgumentError, match="label_column of SklearnTrainer is 3: pass the name of the column"):
        SklearnTrainer(**{**GOOD, "label_column": 3}, preprocessor=discretizer)
