"""Which files of a training are saved with its run."""

from __future__ import annotations

from trainlib.callbacks._mlflow import _own_files


def test_links_and_the_pickle_of_an_error_stay_where_they_are(tmp_path):
    for name in ("error.pkl", "error.txt", "result.json", "pytorch_profiler/rank_0.pt.trace.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "newest").symlink_to("result.json")
    assert [file.name for file in _own_files(tmp_path)] == ["error.txt", "result.json", "rank_0.pt.trace.json"]
