"""All datasets of a training have the same features, whatever else they have; queries stay together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from trainlib._boosting import table as tables
from trainlib._boosting.table import labelled
from trainlib.errors import DataError

TRAIN = pa.table({"a": [1.0, 2.0], "b": [3, 4], "w": [0.5, 2.0], "y": [0, 1]})


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.setattr(tables.session, "get_world_rank", lambda: 0)


def test_a_column_that_one_dataset_names_is_a_feature_of_none():
    train = labelled("train", TRAIN, "y", {"weight": "w"}, left_out={"w"})
    assert train.features.column_names == ["a", "b"]
    assert train.columns["weight"].tolist() == [0.5, 2.0]
    valid = labelled("valid", TRAIN, "y", {}, left_out={"w"}, like=["a", "b"])
    assert (valid.features.column_names, valid.columns) == (["a", "b"], {})
    assert labelled("valid", TRAIN.drop_columns(["w"]), "y", {}, left_out={"w"}, like=["a", "b"]).rows == 2


def test_features_are_those_of_train_by_name():
    other = pa.table({"y": [1], "extra": ["no number"], "b": [7], "a": [5.0]})
    assert labelled("valid", other, "y", {}, like=["a", "b"]).features.to_pydict() == {"a": [5.0], "b": [7]}
    with pytest.raises(DataError, match="the dataset 'valid' lacks 'b', 'c', which 'train' has"):
        labelled("valid", other.drop_columns(["b"]), "y", {}, like=["a", "b", "c"])
    with pytest.raises(DataError, match=r"has no column 'v', but dmatrix_params\['valid'\] names it as the weight"):
        labelled("valid", other, "y", {"weight": "v"})


def test_both_libraries_learn_from_float16_and_from_columns_without_a_value():
    import lightgbm
    import xgboost

    from trainlib.lightgbm._boost import _datasets
    from trainlib.xgboost._boost import _matrices

    values = np.random.default_rng(0).normal(size=200).astype("float16")
    rows = pa.table({"a": values, "gone": pa.nulls(200), "y": (values > 0).astype("float16")})
    read = {"train": labelled("train", rows, "y", {})}
    assert [str(kind) for kind in read["train"].features.schema.types] == ["float", "float"]
    params = {"verbosity": -1, "num_threads": 1}
    assert lightgbm.train(params, _datasets(read, params, {})["train"], 2).num_trees() == 2
    assert xgboost.train({}, _matrices(read, {"nthread": 1}, {})["train"], 2).num_boosted_rounds() == 2


def test_names_that_a_library_does_not_take_are_found_by_whoever_reads_the_rows():
    rows = pa.table({"a:b": [1.0], "w[0]": [2.0], "y": [0]})
    with pytest.raises(DataError, match=r"the column 'a:b' of the dataset 'train' has ':' in its name.* e.g. to 'a_b'"):
        labelled("train", rows, "y", {"weight": "w[0]"}, not_in_names=":[]")
    assert labelled("train", rows, "y", {"weight": "w[0]"}, not_in_names="[]").features.column_names == ["a:b"]


@pytest.mark.parametrize("ids", [[2**53 + 1, 2**53, 2**53 + 1, 7], ["c", "b", "c", "a"]], ids=["large", "text"])
def test_rows_of_a_query_follow_each_other_and_ids_are_not_rounded(ids):
    rows = pa.table({"q": ids, "a": [0, 1, 2, 3], "y": [10, 11, 12, 13]})
    made = labelled("train", rows, "y", {"qid": "q"})
    assert made.columns["qid"].tolist() == [0, 1, 2, 2]
    assert made.features.to_pydict() == {"a": [3, 1, 0, 2]}
    assert made.labels.tolist() == [13, 11, 10, 12]
    missing = pa.table({"q": [1, None], "a": [0, 1], "y": [0, 1]})
    with pytest.raises(DataError, match="the qid 'q' of the dataset 'train' is missing in 1 of the 2 rows"):
        labelled("train", missing, "y", {"qid": "q"})


def test_both_libraries_rank_as_they_do_with_groups_of_their_own():
    import lightgbm
    import xgboost

    from trainlib.lightgbm._boost import _datasets
    from trainlib.xgboost._boost import _columns_of, _matrices

    rng = np.random.default_rng(0)
    queries, rows, labels = np.repeat(np.arange(20), 10), rng.normal(size=(200, 2)), rng.integers(0, 3, size=200)
    weights = 1.0 + queries % 3
    order = rng.permutation(200)
    mixed = pa.table(
        {"q": queries[order], "w": weights[order], "a": rows[order, 0], "b": rows[order, 1], "y": labels[order]}
    )
    made = labelled("train", mixed, "y", {"qid": "q", "weight": "w"})
    sorted_again = np.argsort(queries[order], kind="stable")
    kept, kept_labels = rows[order][sorted_again], labels[order][sorted_again]

    params = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5}
    bare = lightgbm.Dataset(kept, kept_labels, group=[10] * 20, weight=weights[order][sorted_again], params=params)
    ours = _datasets({"train": made}, params, {"train": {"qid": "q", "weight": "w"}})["train"]
    predicted = [lightgbm.train(params, each, 3).predict(kept) for each in (bare, ours)]
    np.testing.assert_allclose(*predicted)

    params = {"objective": "rank:ndcg", "nthread": 1}
    bare = xgboost.QuantileDMatrix(kept, kept_labels, group=[10] * 20, weight=1.0 + np.arange(20) % 3)
    ours = _matrices({"train": made}, params, {"train": {"qid": "q", "weight": "w"}})["train"]
    predicted = [xgboost.train(params, each, 3).predict(each) for each in (bare, ours)]
    np.testing.assert_allclose(*predicted, atol=1e-6)
    uneven = labelled(
        "train", pa.table({"q": [1, 1], "w": [1, 2], "a": [0, 1], "y": [0, 1]}), "y", {"qid": "q", "weight": "w"}
    )
    with pytest.raises(DataError, match="the weights of the dataset 'train' differ within a query"):
        _columns_of(uneven)


@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.float64()], ids=str)
def test_a_share_whose_labels_or_weights_are_all_missing_is_told_so(kind):
    rows = pa.table({"a": [0.0, 1.0], "y": pa.nulls(2, kind), "known": [0, 1]})
    with pytest.raises(DataError, match="the label 'y' of the dataset 'train' is missing in 2 of the 2 rows of rank 0"):
        labelled("train", rows, "y", {})
    with pytest.raises(DataError, match="the weight 'y' of the dataset 'train' is missing in 2 of the 2 rows"):
        labelled("train", rows, "known", {"weight": "y"})


@pytest.mark.parametrize(
    "given",
    [
        {"updater": "grow_colmaker,prune"},
        {"updater": "grow_histmaker"},
        {"updater": "grow_quantile_histmaker"},
        {"tree_method": "exact"},
        {},
    ],
    ids=str,
)
def test_values_are_cut_into_bins_only_where_xgboost_takes_bins(given):
    import xgboost

    from trainlib.xgboost._boost import _matrices

    rows = pa.table({"a": np.random.default_rng(0).normal(size=300), "y": np.arange(300) % 2})
    params = {"nthread": 1, "verbosity": 0, **given}
    made = _matrices({name: labelled(name, rows, "y", {}) for name in ("train", "valid")}, params, {})
    evals = [(each, name) for name, each in made.items()]
    assert xgboost.train(params, made["train"], 2, evals=evals, verbose_eval=False).num_boosted_rounds() == 2


@pytest.mark.parametrize("where", ["params", "dmatrix_params"])
@pytest.mark.parametrize("method", ["hist", "approx"])
def test_the_model_and_the_matrices_of_all_datasets_have_as_many_bins_wherever_it_is_said(where, method):
    import xgboost

    from trainlib.xgboost._bins import max_bin_of
    from trainlib.xgboost._boost import _matrices

    rows = pa.table({"a": np.random.default_rng(0).normal(size=300), "y": np.arange(300) % 2})
    read = {name: labelled(name, rows, "y", {}) for name in ("train", "valid")}
    params = {"nthread": 1, "tree_method": method, **({"max_bin": 16} if where == "params" else {})}
    given = {"train": {"max_bin": 16}} if where == "dmatrix_params" else {}
    params["max_bin"] = max_bin_of(params, given)
    assert params["max_bin"] == 16
    made = _matrices(read, params, given)
    xgboost.train(params, made["train"], 2, evals=[(each, name) for name, each in made.items()], verbose_eval=False)
    if method == "hist":
        assert [each.get_quantile_cut()[1].size for each in made.values()] == [17, 17]
    assert max_bin_of({}, {"valid": {"missing": 0}}) is None
