"""What is wrong with a training of boosted trees is said before anything starts, or by whoever reads the rows."""

from __future__ import annotations

import ctypes
import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from ray.data.preprocessors import Concatenator
from ray.train import DataConfig as RaysConfig

from trainlib import DataConfig, ScalingConfig
from trainlib import _rooms as rooms
from trainlib._boosting import table
from trainlib._boosting.labels import Needs, require_fit
from trainlib.errors import DataError, InvalidArgumentError
from trainlib.lightgbm import LightGBMTrainer
from trainlib.lightgbm._library import LIBRARY as LIGHTGBM
from trainlib.lightgbm._params import ALIASES
from trainlib.xgboost import XGBoostTrainer
from trainlib.xgboost._library import LIBRARY as XGBOOST

ROWS = pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]})
GOOD = {"params": {}, "label_column": "y", "datasets": {"train": ROWS}}
BOTH = pytest.mark.parametrize("trainer", [XGBoostTrainer, LightGBMTrainer])


@BOTH
@pytest.mark.parametrize("given", [None, {"enable_shard_locality": False}, RaysConfig()], ids=["none", "dict", "Ray's"])
def test_all_rows_of_all_datasets_are_split_whatever_form_a_config_has(trainer, given):
    config = trainer(**{**GOOD, "datasets": {"train": ROWS, "valid": ROWS}}, dataset_config=given).dataset_config
    assert (config.datasets_to_split, config.equal) == ("all", False)
    asked = DataConfig(["train"], equal=True)
    config = trainer(**GOOD, dataset_config=asked).dataset_config
    assert (config.datasets_to_split, config.equal) == (["train"], True), "unless it says otherwise"


@BOTH
def test_a_missing_package_is_named_with_its_extra(monkeypatch, trainer):
    package = trainer.room.name
    monkeypatch.setattr(rooms, "find_spec", lambda name: None if name == package else "found")
    with pytest.raises(ImportError, match=rf"{trainer.__name__} needs {package}: pip install 'trainlib\[{package}\]'"):
        trainer(**GOOD)


@BOTH
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": {"valid": ROWS}}, "learns from the dataset 'train', but the datasets are 'valid'"),
        ({"datasets": None}, r"No datasets were given. Pass datasets=\{'train': ...\}"),
        ({"label_column": "z"}, "the dataset 'train' has no column 'z'. label_column must be one of 'a', 'y'"),
        ({"label_column": None}, "label_column of .* is missing: pass the name of the column to predict"),
        ({"params": None}, "params of .* is missing: pass a dict"),
        ({"params": [("eta", 0.1)]}, r"params of .* is \[\('eta', 0.1\)\]: pass a dict"),
        ({"num_boost_round": 0}, "num_boost_round is 0: pass a whole number that is 1 or more"),
        (
            {"dmatrix_params": "train"},
            r"dmatrix_params of .* is 'train': pass a dict, e.g. dmatrix_params=\{'train': \{'weight': 'w'\}\}",
        ),
        (
            {"dmatrix_params": {"trian": {"weight": "w"}}},
            "names the dataset 'trian', but the datasets are 'train'. Did you mean 'train'",
        ),
        (
            {"dmatrix_params": {"train": "w"}},
            r"dmatrix_params\['train'\] of .* is 'w': pass a dict, e.g. .*'weight': 'w'",
        ),
        ({"dmatrix_params": {"train": {"weight": [1, 2]}}}, r"\['weight'\] is \[1, 2\]: pass the name of a column"),
        (
            {"dmatrix_params": {"train": {"wieght": "w"}}},
            r"dmatrix_params\['train'\] has 'wieght', which is no argument of \w+.\w+. Did you mean 'weight'\?",
        ),
        ({"dmatrix_params": {"train": {"label": "a"}}}, "has 'label', which .*Trainer sets. Pass label_column"),
        ({"dmatrix_params": {"train": {"group": [2]}}}, "has 'group', which .*Trainer sets. Name the column .* 'qid'"),
        (
            {"dmatrix_params": {"train": {"qid": "q"}}, "scaling_config": {"num_workers": 2}},
            "with 2 workers the rows of a query would be split between them. Use ScalingConfig.num_workers=1",
        ),
        ({"early_stopping_rounds": 3}, "early_stopping_rounds needs a dataset besides 'train'"),
        ({"early_stopping_rounds": 0}, "early_stopping_rounds is 0: pass a whole number that is 1 or more"),
        ({"callbacks": []}, r"has no argument 'callbacks'. Pass RunConfig\(callbacks=\[...\]\)"),
        (
            {"evals_result": {}},
            "has no argument 'evals_result'. Result.metrics_dataframe has the metrics of each round",
        ),
        ({"verbose_eval": True}, "has no argument 'verbose_eval'. Every round is reported"),
        ({"num_boost_rounds": 3}, "has no argument 'num_boost_rounds'. Did you mean 'num_boost_round'"),
    ],
)
def test_arguments_that_cannot_be_right(trainer, changes, message):
    with pytest.raises((ValueError, InvalidArgumentError, DataError), match=message):
        trainer(**{**GOOD, **changes})


def test_what_xgboost_train_and_lightgbm_train_take_is_taken_where_it_makes_sense():
    made = XGBoostTrainer(
        **{**GOOD, "datasets": {"train": ROWS, "valid": ROWS}}, early_stopping_rounds=3, verbose_eval=False
    )
    assert made.train_loop_config["early_stopping_rounds"] == 3
    assert made.copy_with(num_boost_round=4).train_loop_config["early_stopping_rounds"] == 3
    with pytest.raises(
        InvalidArgumentError, match=r"'xgb_model'. Pass resume_from_checkpoint=XGBoostCheckpoint.from_model"
    ):
        XGBoostTrainer(**GOOD, xgb_model=None)
    with pytest.raises(
        InvalidArgumentError, match=r"'init_model'. Pass resume_from_checkpoint=LightGBMCheckpoint.from_model"
    ):
        LightGBMTrainer(print, init_model=None)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        *(
            ({name: 5}, f"params has '{name}'.*Pass num_boost_round=")
            for name in ("n_estimators", "num_iterations", "max_iter")
        ),
        ({"machines": "a:1"}, "trainlib connects the workers. Leave it out: ScalingConfig"),
        ({"port": 1}, "params has 'port'.* trainlib connects the workers"),
        ({"time_out": 1}, r"lightgbm_config=LightGBMConfig\(timeout_s=...\)"),
        ({"is_pre_partition": False}, "trainlib gives each worker its share of the rows"),
        ({"weight": "w"}, r"Name the column in dmatrix_params=\{'train': \{'weight': ...\}\}"),
        (
            {"tree_type": "serial"},
            "tree_type is 'serial', but each worker has its share of the rows. Use 'data' or 'voting'",
        ),
        ({"early_stopping_round": 3, "boost": "dart"}, "LightGBM has no early stopping with boosting='dart'"),
        ({"n_iter_no_change": 3}, "needs a dataset besides 'train'"),
        ({"objective": "lambdarank"}, "The objective lambdarank ranks the rows of each query.*'qid': 'query'"),
    ],
)
def test_parameters_of_lightgbm_that_would_replace_what_the_trainer_sets(params, message):
    with pytest.raises(InvalidArgumentError, match=message):
        LightGBMTrainer(**{**GOOD, "params": params})
    LightGBMTrainer(**{**GOOD, "params": {"tree_learner": "voting", "early_stopping_round": 0}})
    with pytest.raises(
        InvalidArgumentError, match=r"early_stopping_rounds is 3, but params has 4. Leave one of them out"
    ):
        LightGBMTrainer(**{**GOOD, "params": {"early_stopping": 4}, "early_stopping_rounds": 3})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": 5}, "params has 'n_estimators'.*Pass num_boost_round="),
        ({"early_stopping_rounds": 5}, "Pass early_stopping_rounds=... to XGBoostTrainer"),
        ({"process_type": "update"}, "Pass a training function"),
        ({"max_bin": 64}, r"max_bin is 64 in params, but 16 in dmatrix_params\['train'\]. .* Leave one of them out"),
        ({"objective": "rank:ndcg"}, "The objective rank:ndcg ranks the rows of each query.*'qid': 'query'"),
    ],
)
def test_parameters_of_xgboost_that_the_trainer_cannot_take(params, message):
    with pytest.raises(InvalidArgumentError, match=message):
        XGBoostTrainer(**{**GOOD, "params": params, "dmatrix_params": {"train": {"max_bin": 16}}})
    XGBoostTrainer(**{**GOOD, "params": {"max_bin": "16"}, "dmatrix_params": {"train": {"max_bin": 16}}})
    with pytest.raises(
        InvalidArgumentError, match=r"max_bin is 'many' in dmatrix_params\['train'\]: pass a whole number"
    ):
        XGBoostTrainer(**GOOD, dmatrix_params={"train": {"max_bin": "many"}})


@pytest.mark.parametrize(
    ("trainer", "params", "message"),
    [
        (
            XGBoostTrainer,
            {"booster": "gblinear"},
            "each worker would train a model of its own rows. Use another booster",
        ),
        (XGBoostTrainer, {"tree_method": "exact"}, "in a single process only. Use 'hist' or 'approx'"),
        (
            XGBoostTrainer,
            {"updater": "grow_colmaker,prune"},
            "in a single process only. Use 'grow_quantile_histmaker' or",
        ),
        (XGBoostTrainer, {"objective": "survival:cox"}, "each worker would compare its own rows. Use 'survival:aft'"),
        (XGBoostTrainer, {"objective": "survival:cox", "eval_metric": "rmse"}, "compare its own rows"),
        (XGBoostTrainer, {"eval_metric": "cox-nloglik"}, "each worker would compare its own rows. Use another metric"),
        (XGBoostTrainer, {"eval_metric": ["rmse", "cox-nloglik"]}, "Use another metric"),
        (LightGBMTrainer, {"linear_trees": True}, "each worker would fit the leaves to its own rows. Leave it out"),
        (LightGBMTrainer, {"linear_tree": "true"}, "each worker would fit the leaves to its own rows"),
        (
            LightGBMTrainer,
            {"boosting": "rf", "objective": "poisson", "bagging_freq": 1, "bagging_fraction": 0.5},
            "every tree starts from the mean label, and each worker would take that of its own rows",
        ),
    ],
)
def test_what_several_workers_cannot_train_together(trainer, params, message):
    with pytest.raises(InvalidArgumentError, match=rf"{message}.* Or use ScalingConfig\(num_workers=1.* are 2 workers"):
        trainer(**{**GOOD, "params": params}, scaling_config=ScalingConfig(num_workers=2))
    trainer(**{**GOOD, "params": params}).inspect_arguments()
    LightGBMTrainer(**{**GOOD, "params": {"linear_tree": False}}, scaling_config=ScalingConfig(num_workers=2))


@BOTH
def test_a_parameter_that_is_none_means_nothing(trainer):
    """As to the libraries themselves: ``XGBClassifier().get_params()`` is full of them."""
    given = dict.fromkeys(("max_depth", "max_bin", "num_threads", "n_jobs", "tree_method", "objective", "verbosity"))
    made = trainer(**{**GOOD, "params": {**given, "learning_rate": 0.1}})
    made.inspect_arguments()
    assert made.train_loop_config["params"] == {"learning_rate": 0.1}


def test_names_of_columns_are_those_of_the_datasets():
    with pytest.raises(
        InvalidArgumentError, match=r"has 'feature_names', which XGBoostTrainer sets. Name the columns of the datasets"
    ):
        XGBoostTrainer(**GOOD, dmatrix_params={"train": {"feature_names": ["b"]}})
    with pytest.raises(
        InvalidArgumentError, match=r"has 'feature_name', which LightGBMTrainer sets. Name the columns of the datasets"
    ):
        LightGBMTrainer(**GOOD, dmatrix_params={"train": {"feature_name": ["b"]}})


@BOTH
def test_a_label_that_a_preprocessor_may_make_is_looked_for_after_it(trainer, tmp_path):
    made = Concatenator(columns=["y"], output_column_name="z", raise_if_missing=True)
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    for train in (ROWS, str(tmp_path / "rows.csv")):
        given = {**GOOD, "datasets": {"train": train}, "label_column": "z"}
        trainer(**given, preprocessor=made).inspect_data()
        with pytest.raises(DataError, match=r"has no column 'z'. label_column must be one of 'a', 'y'"):
            trainer(**given).inspect_data()
    with pytest.raises(InvalidArgumentError, match=r"label_column of .* is missing"):
        trainer(**{**GOOD, "label_column": None}, preprocessor=made)


def test_lightgbm_has_no_other_spellings():
    from lightgbm.basic import _ConfigAliases

    aliases = _ConfigAliases._get_all_param_aliases()
    assert {name: {name, *known} for name, known in ALIASES.items()} == {name: set(aliases[name]) for name in ALIASES}


def test_the_matrices_of_both_libraries_have_no_other_arguments():
    import lightgbm
    import xgboost

    for library, kind in ((LIGHTGBM, lightgbm.Dataset), (XGBOOST, xgboost.QuantileDMatrix)):
        assert library.matrix == f"{library.package}.{kind.__name__}"
        theirs = {name for name in inspect.signature(kind.__init__).parameters if name != "self"}
        assert {*library.arguments, *library.columns, *library.taken} - {"qid"} == theirs - {"qid"}
        assert len({*library.arguments, *library.columns, *library.taken}) == sum(
            map(len, (library.arguments, library.columns, library.taken))
        ), "each is in one of them"


@pytest.mark.parametrize(
    ("trainer", "objective"),
    [(XGBoostTrainer, "multi:softmax"), (XGBoostTrainer, "multi:softprob"), (LightGBMTrainer, "multiclass")],
)
def test_objectives_of_classes_need_their_number(trainer, objective):
    with pytest.raises(ValueError, match=f"the objective {objective} needs num_class, the number of classes"):
        trainer(**{**GOOD, "params": {"objective": objective}})
    with pytest.raises(ValueError, match="num_class is -1: pass the number of classes"):
        trainer(**{**GOOD, "params": {"objective": objective, "num_class": -1}})


@BOTH
def test_files_without_the_label_or_with_too_few_rows_are_found_before_anything_starts(tmp_path, trainer):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    ROWS.to_parquet(tmp_path / "rows.parquet")
    files = {"train": str(tmp_path / "rows.csv")}
    with pytest.raises(DataError, match=r"'train' \(.*rows.csv\) has no column 'z'. label_column must be one of"):
        trainer(params={}, label_column="z", datasets=files).inspect_data()
    few = trainer(
        params={},
        label_column="y",
        datasets={"train": pd.concat([ROWS, ROWS]), "valid": str(tmp_path / "rows.parquet")},
        scaling_config=ScalingConfig(num_workers=3),
    )
    with pytest.raises(DataError, match=r"'valid' .* has only 2 row\(s\) for 3 workers"):
        few.inspect_data()


@pytest.mark.parametrize(
    ("trainer", "name", "wrong"),
    [
        *((LightGBMTrainer, f"a{each}", each) for each in '",:[]{}'),
        *((XGBoostTrainer, f"a{each}", each) for each in "[]<"),
    ],
)
def test_names_that_a_library_does_not_take_are_found_before_anything_starts(tmp_path, trainer, name, wrong):
    rows = ROWS.rename(columns={"a": name})
    with pytest.raises(
        DataError, match=rf"'a\{wrong}' of the dataset 'train' has '\{wrong}' in its name.* e.g. to 'a_'"
    ):
        trainer(**{**GOOD, "datasets": {"train": rows}})
    rows.to_parquet(tmp_path / "rows.parquet")
    in_file = trainer(**{**GOOD, "datasets": {"train": str(tmp_path / "rows.parquet")}})
    with pytest.raises(DataError, match=rf"the dataset 'train' \(.*rows.parquet\) has '\{wrong}' in its name"):
        in_file.inspect_data()
    no_feature = rows.assign(b=1.0).rename(columns={"y": "y[0]"})
    trainer(
        **{**GOOD, "datasets": {"train": no_feature}, "label_column": "y[0]"},
        dmatrix_params={"train": {"weight": name}},
    )


@BOTH
def test_the_libraries_themselves_take_all_other_names(trainer):
    """Not to refuse what would work."""
    import lightgbm
    import xgboost

    name = "".join(chr(code) for code in range(32, 127) if chr(code) not in trainer.library.not_in_names)
    rows = pa.table({name: np.arange(100.0)})
    labels = np.arange(100) % 2
    if trainer is XGBoostTrainer:
        assert xgboost.train({}, xgboost.DMatrix(rows, labels), 1).feature_names == [name]
    else:
        lightgbm.train({"verbosity": -1}, lightgbm.Dataset(rows, labels), 1)


@pytest.mark.parametrize(
    ("need", "labels", "wrong"),
    [
        (Needs.BETWEEN_0_AND_1, [0, 0.5, 1], 9),
        (Needs.ZERO_OR_ONE, [0, 1, 1], 0.5),
        (Needs.CLASSES, [0, 1, 2], 3),
        (Needs.CLASSES, [2, 2, 2], 0.5),
        (Needs.NOT_NEGATIVE, [0, 7], -1),
        (Needs.POSITIVE, [0.1, 7], 0),
    ],
)
def test_labels_that_an_objective_cannot_learn(need, labels, wrong):
    require_fit(np.array(labels, "float32"), need, "some", 3, "the label")
    with pytest.raises(
        DataError, match=f"the objective some needs labels that are {need}.* has {wrong}. Choose another"
    ):
        require_fit(np.array([*labels, wrong], "float32"), need, "some", 3, "the label")


def test_columns_that_are_no_numbers_are_named_with_what_to_do():
    text = pa.table({"city": ["Ulm", "Bonn"], "a": [1, 2]})
    with pytest.raises(DataError, match=r"the column 'city' of some rows has type string. Trees need numbers: encode"):
        table._require_features(text, "some rows", categories=True)
    category = pa.table({"city": text["city"].dictionary_encode()})
    table._require_features(category, "some rows", categories=True)
    with pytest.raises(DataError, match="the column 'city'"):
        table._require_features(category, "some rows", categories=False)
    numbered = pa.table({"city": pa.array([7, 8]).dictionary_encode()})
    with pytest.raises(
        DataError, match=r"'city' of some rows has categories of type int64. Categories have to be text"
    ):
        table._require_features(numbered, "some rows", categories=True)
    with pytest.raises(DataError, match="some rows has no columns besides the label"):
        table._require_features(pa.table({}), "some rows", categories=True)
    with pytest.raises(DataError, match=r"the label has type string. Trees need numbers: encode it"):
        table._numbers(text["city"], "the label", 0)
    with pytest.raises(DataError, match="the label is missing in 2 of the 4 rows of rank 1"):
        table._numbers(pa.chunked_array([[1.0, None], [float("nan"), 2.0]]), "the label", 1)
    assert table._numbers(pa.chunked_array([[True], [False]]), "the label", 0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("is_tensor", [True, False])
def test_a_column_of_arrays_is_no_matter_of_encoding(is_tensor):
    import ray.data.extensions as of_ray

    arrays = np.eye(2)
    column = of_ray.ArrowTensorArray.from_numpy(arrays) if is_tensor else pa.array(arrays.tolist())
    with pytest.raises(
        DataError, match=r"'f' of some rows has arrays. Trees need one number per column: leave the Concatenator out"
    ):
        table._require_features(pa.table({"f": column}), "some rows", categories=True)


def xgboost_with(**more):
    good = {"objective": "binary:logistic", "eval_metric": ["auc", "error"], "eta": 0.1, "max_depth": 3, "nthread": 1}
    return XGBoostTrainer(**{**GOOD, "params": {**good, **more}})


def test_parameters_that_a_library_does_not_know_are_found_without_importing_it():
    xgboost_with().inspect_data()
    xgboost_with(max_dept=3, validate_parameters=False).inspect_data()
    xgboost_with(objective="reg:quantileerror", quantile_alpha=[0.1, 0.9], monotone_constraints=(1, 0)).inspect_data()
    with pytest.raises(InvalidArgumentError, match="XGBoost does not know 'eta_', 'max_dept' in params"):
        xgboost_with(max_dept=3, eta_=1).inspect_data()
    with pytest.raises(InvalidArgumentError, match="XGBoost does not know 'max_dept' in params"):
        xgboost_with(objective="reg:quantileerror", quantile_alpha=np.array([0.1, 0.9]), max_dept=3).inspect_data()
    with pytest.raises(
        InvalidArgumentError, match="XGBoost does not accept params: Invalid Parameter format for max_depth"
    ):
        xgboost_with(max_depth="deep").inspect_data()
    with pytest.raises(InvalidArgumentError, match="does not accept params: Unknown objective function: `binary`"):
        xgboost_with(objective="binary").inspect_data()
    good = {"objective": "binary", "metric": ["auc"], "eta": 0.1, "n_jobs": 1, "num_leaves": 8}
    LightGBMTrainer(**{**GOOD, "params": good}).inspect_data()
    with pytest.raises(InvalidArgumentError, match=r"'max_dept' in params\. Did you mean 'max_depth'"):
        LightGBMTrainer(**{**GOOD, "params": {**good, "max_dept": 3}}).inspect_data()


def lightgbm_with(**params):
    return LightGBMTrainer(**{**GOOD, "params": params})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"metric": "acu"}, "LightGBM does not know the metric 'acu' in params"),
        ({"metrics": ["auc", "acu"], "objective": "binary"}, "does not know the metric 'acu'"),
        ({"metric": "auc,binary_loglos"}, "does not know the metric 'binary_loglos'"),
        ({"metric": "auc, l2"}, "does not know the metric ' l2'"),
        ({"metric_types": {"auc": 1}}, "metric_types is {'auc': 1}: pass a number, a text or a list"),
        ({"metric": "auc", "objective": "softmax", "num_class": 3}, "Multiclass objective and metrics don't match"),
        (
            {"objective": "binry"},
            "LightGBM does not accept objective='binry' in params: Unknown objective type name: binry",
        ),
        ({"loss": "binry", "eta": 0.1}, "does not accept loss='binry'"),
        ({"num_leaves": "many"}, "does not accept num_leaves='many' in params: .* should be of type int, got \"many\""),
        ({"num_leaves": 31.0}, r"does not accept num_leaves=31\.0"),
        ({"num_leaves": 1}, r"does not accept num_leaves=1 in params: Check failed: \(num_leaves\) > \(1\)$"),
        ({"eta": "fast", "num_leaves": 8}, "does not accept eta='fast'"),
        ({"boosting": "drat"}, "does not accept boosting='drat' in params: Unknown boosting type drat"),
        ({"extra_trees": "maybe"}, "does not accept extra_trees='maybe'"),
        ({"num_class": 3}, "does not accept num_class=3 in params: Number of classes must be 1 for non-multiclass"),
        ({"num_class": 3, "objective": "binary"}, "does not accept num_class=3"),
        (
            {"objective": "binary", "is_unbalance": True, "scale_pos_weight": 2},
            "does not accept params: Cannot set is_unbalance and scale_pos_weight at the same time",
        ),
        (
            {"objective": "quantile", "alpha": 2},
            "does not accept params: the objective quantile needs an alpha between",
        ),
        ({"boosting": "rf"}, "does not accept boosting='rf' in params: a random forest needs bagging_freq above 0"),
        ({"boosting": "rf", "bagging_freq": 1}, "a random forest needs bagging_freq above 0 and a bagging_fraction"),
        ({"data_sample_strategy": "gos"}, "does not accept data_sample_strategy='gos'"),
        ({"data_sample_strategy": "goss", "top_rate": 0.9, "other_rate": 0.5}, "may not be more than 1 together"),
    ],
)
def test_values_that_lightgbm_does_not_take(capfd, params, message):
    with pytest.raises(InvalidArgumentError, match=message):
        lightgbm_with(**params).inspect_arguments()
    assert capfd.readouterr() == ("", ""), "LightGBM's own words are for nobody"
    ctypes.CDLL(None).perror(b"what others say")
    assert "what others say" in capfd.readouterr().err, "which goes where it went before"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"subsample": 2}, r"params: value 2 for Parameter subsample exceed bound \[0,1\]"),
        ({"eta": -1}, "params: value -1 for Parameter learning_rate should be greater equal to 0"),
        ({"max_depth": -1}, "params: value -1 for Parameter max_depth should be greater equal to 0"),
        ({"booster": "gbtre"}, "params: Unknown gbm type gbtre"),
        ({"tree_method": "hits"}, "tree_method='hits' in params: Invalid Input: 'hits', valid values are: .*'hist'"),
        ({"grow_policy": "lossguid"}, "grow_policy='lossguid' in params: .*'lossguide'"),
        ({"device": "tpu"}, "params: Invalid argument for `device`"),
        ({"updater": "grow_histmake"}, "params: Unknown tree updater grow_histmake"),
        ({"base_score": 2}, "params: base_score must be in"),
        ({"objective": "reg:quantileerror", "quantile_alpha": 2}, "params: quantile alpha must be in the range"),
    ],
)
def test_values_that_xgboost_does_not_take(params, message):
    with pytest.raises(InvalidArgumentError, match=f"XGBoost does not accept {message}"):
        xgboost_with(**params).inspect_arguments()


_METRICS = (
    "l1 l2 rmse quantile mape huber fair poisson gamma gamma_deviance tweedie r2 ndcg map auc average_precision binary_logloss "
    "binary_error cross_entropy cross_entropy_lambda kullback_leibler mae mse xentropy kldiv rank_xendcg None AUC"
)


def test_values_that_lightgbm_takes_are_not_refused_and_nothing_is_said_of_them(capfd):
    lightgbm_with(metric=_METRICS.split()).inspect_arguments()
    lightgbm_with(metric=_METRICS.replace(" ", ","), verbosity=2).inspect_arguments()
    for objective in (
        "regression",
        "mae",
        "huber",
        "fair",
        "poisson",
        "quantile",
        "mape",
        "gamma",
        "tweedie",
        "binary",
    ):
        lightgbm_with(objective=objective, metric="").inspect_arguments()
    for objective in ("multiclass", "ova"):
        several = ["multi_logloss", "multi_error", "auc_mu"]
        lightgbm_with(objective=objective, num_class=5, metric=several).inspect_arguments()
    for objective in ("cross_entropy", "cross_entropy_lambda", "rank_xendcg", "lambdarank"):
        LIGHTGBM.require_known_here({"objective": objective})
    lightgbm_with(
        monotone_constraints=[1, 0],
        cat_feature=[3],
        device="cuda",
        metric=None,
        eval_at=(1, 5),
        feature_contri=np.ones(2),
    ).inspect_arguments()
    lightgbm_with(
        boosting="rf", bagging_freq=1, bagging_fraction=0.5, num_threads=1, linear_tree=False
    ).inspect_arguments()
    lightgbm_with(verbose=2, n_jobs=2).inspect_arguments()
    assert capfd.readouterr() == ("", "")


def test_neither_library_is_imported_for_that():
    script = """
import sys, pandas
from trainlib.lightgbm import LightGBMTrainer
from trainlib.xgboost import XGBoostTrainer
from trainlib.xgboost._library import LIBRARY as XGBOOST
rows = {"train": pandas.DataFrame({"a": [1.0], "y": [0]})}
for trainer in (LightGBMTrainer, XGBoostTrainer):
    try:
        trainer(params={"max_dept": 3}, label_column="y", datasets=rows).inspect_data()
    except ValueError as error:
        assert "max_dept" in str(error), error
    else:
        raise AssertionError("nobody has noticed it")
assert not {"lightgbm", "xgboost", "sklearn", "scipy"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
