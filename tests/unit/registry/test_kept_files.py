"""Files that a run keeps for whoever continues it."""

from __future__ import annotations

from trainlib._registry.kept_files import KeptFile

SETTINGS = KeptFile("trainer", "settings.pkl")


def test_what_is_kept_can_be_loaded_and_replaced(tmp_path):
    for location in (str(tmp_path / "a"), (tmp_path / "b").as_uri()):
        assert SETTINGS.load(location) is None
        for data in (b"first", b"second"):
            SETTINGS.save(location, data)
            assert SETTINGS.load(location) == data


def test_each_file_has_a_folder_of_its_own(tmp_path):
    SETTINGS.save(str(tmp_path), b"data")
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.pkl")] == ["trainer/settings.pkl"]
    assert SETTINGS.location("s3://bucket/run") == "s3://bucket/run/trainer"
