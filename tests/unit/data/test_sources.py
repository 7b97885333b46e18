"""Data files: how they are found, inspected and hashed, and the errors for bad ones."""

from __future__ import annotations

import functools
import gzip
import http.server
import os
import threading

import pandas as pd
import pyarrow as pa
import pytest

from trainlib._data.sources import inspect_source
from trainlib.errors import DataError, DataNotFoundError

TABLE = pd.DataFrame({"x": [1.5, 2.5, 3.5], "label": ["a", "b", "a"]})


def write(table: pd.DataFrame, path) -> str:
    name = str(path)
    if ".csv" in name:
        table.to_csv(path, index=False)
    elif "json" in name:
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_parquet(path)
    return name


@pytest.mark.parametrize(
    "name",
    [
        "t.csv",
        "t.csv.gz",
        "t.csv.bz2",
        "t.csv.zst",
        "t.parquet",
        "t.pq",
        "t.jsonl",
        "t.jsonl.gz",
        "t.ndjson",
        "T.CSV.lz4",
    ],
)
def test_the_format_of_a_file_follows_from_its_name(tmp_path, name):
    path = tmp_path / name
    if name.endswith((".zst", ".lz4")):
        with pa.CompressedOutputStream(str(path), {".zst": "zstd", ".lz4": "lz4"}[path.suffix]) as stream:
            stream.write(TABLE.to_csv(index=False).encode())
    else:
        write(TABLE, path)
    found = inspect_source(path)
    assert found.rows == 3
    assert list(found.columns) == ["x", "label"]
    assert found.columns["x"] == "double"


def test_a_folder_and_a_glob_are_many_files(tmp_path):
    for index in range(3):
        write(TABLE, tmp_path / f"{index}.csv")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.csv").write_text("broken")
    (tmp_path / "README.txt").write_text("not data")
    assert inspect_source(tmp_path).rows == 9
    assert inspect_source(tmp_path / "[01].csv").rows == 6
    assert inspect_source(f"file://{tmp_path}/1.csv").rows == 3


def test_remote_files_are_inspected_in_place(tmp_path):
    write(TABLE, tmp_path / "t.csv")
    handler = functools.partial(_Quiet, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            uri = f"http://127.0.0.1:{server.server_address[1]}/t.csv"
            assert inspect_source(uri).rows == 3
            before = inspect_source(uri).digest()
            (tmp_path / "t.csv").write_text("x,label\n1,a\n")
            assert inspect_source(uri).digest() != before
            with pytest.raises(DataNotFoundError, match=r"there is no data at .*nothing\.csv"):
                inspect_source(uri.replace("t.csv", "nothing.csv"))
        finally:
            server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def test_integers_and_floats_in_different_files_are_one_column(tmp_path):
    (tmp_path / "1.csv").write_text("x\n1\n")
    (tmp_path / "2.csv").write_text("x\n1.5\n")
    assert inspect_source(tmp_path).columns == {"x": "double"}


def test_a_column_has_the_type_of_all_its_values(tmp_path):
    (tmp_path / "late.csv").write_text("x,y\n" + "1,\n" * 400_000 + "2.5,text\n")
    assert inspect_source(tmp_path / "late.csv").columns == {"x": "double", "y": "string"}


def test_a_name_that_looks_like_a_pattern_is_a_name(tmp_path):
    write(TABLE, tmp_path / "data [1].csv")
    assert inspect_source(tmp_path / "data [1].csv").rows == 3


def test_the_digest_follows_the_bytes_and_nothing_else(tmp_path):
    path = tmp_path / "t.csv"
    write(TABLE, path)
    before = inspect_source(path).digest()
    os.utime(path, (1, 1))
    assert inspect_source(path).digest() == before, "touched, but not changed"
    path.write_text(path.read_text().replace("1.5", "1.6"))
    assert inspect_source(path).digest() != before


def test_missing_data_is_named(tmp_path):
    with pytest.raises(DataNotFoundError, match=r"there is no data at .*nothing\.csv\. Pass the path or URI"):
        inspect_source(tmp_path / "nothing.csv")
    with pytest.raises(DataNotFoundError, match=r"no file matches .*\*\.parquet"):
        inspect_source(tmp_path / "*.parquet")
    with pytest.raises(DataNotFoundError, match=r"has no data files \(it is empty\)"):
        inspect_source(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(DataNotFoundError, match=r"has no data files \(it has notes\.txt\)"):
        inspect_source(tmp_path)
    with pytest.raises(DataError, match=r"cannot tell the format of .*notes\.txt from its name"):
        inspect_source(tmp_path / "notes.txt")
    with pytest.raises(DataError, match=r"cannot reach nowhere://x"):
        inspect_source("nowhere://x")
    with pytest.raises(DataError, match="in the memory of this process"):
        inspect_source("memory://t.csv")


def test_a_broken_file_is_named_with_the_row(tmp_path):
    whole = tmp_path / "whole.parquet"
    write(TABLE, whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"cut\.parquet is not a complete Parquet file .*write it again"):
        inspect_source(tmp_path)
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("x,y\n1,2\n3,4\n5,6,7\n")
    with pytest.raises(DataError, match=r"ragged\.csv cannot be read: .*Row #4: Expected 2 columns, got 3"):
        inspect_source(ragged)
    zipped = tmp_path / "cut.csv.gz"
    zipped.write_bytes(gzip.compress(b"x,y\n" + b"1,2\n" * 10_000)[:-30])
    with pytest.raises(DataError, match=r"cut\.csv\.gz cannot be read"):
        inspect_source(zipped)
    lines = tmp_path / "broken.jsonl"
    lines.write_text('{"x": 1}\n{"x": \n')
    with pytest.raises(DataError, match=r"broken\.jsonl cannot be read"):
        inspect_source(lines)


def test_files_that_do_not_belong_together_are_named(tmp_path):
    write(TABLE, tmp_path / "1.csv")
    write(TABLE.rename(columns={"label": "other"}), tmp_path / "2.csv")
    with pytest.raises(DataError, match=r"the columns of .*2\.csv differ from those of .*1\.csv: it lacks 'label'"):
        inspect_source(tmp_path)
    write(TABLE.assign(more=1), tmp_path / "2.csv")
    with pytest.raises(DataError, match="it also has 'more'"):
        inspect_source(tmp_path)
    write(TABLE.assign(x="text"), tmp_path / "2.csv")
    with pytest.raises(DataError, match="'x' is string instead of double"):
        inspect_source(tmp_path)
    write(TABLE[["label", "x"]], tmp_path / "2.csv")
    with pytest.raises(DataError, match="their order is label, x instead of x, label"):
        inspect_source(tmp_path)
    write(TABLE, tmp_path / "3.parquet")
    with pytest.raises(DataError, match="files of different formats"):
        inspect_source(tmp_path)


def test_data_without_rows_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n")
    with pytest.raises(DataError, match="has columns but no rows"):
        inspect_source(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("")
    with pytest.raises(DataError, match=r"t\.csv is an empty file, without even a header"):
        inspect_source(tmp_path / "t.csv")
