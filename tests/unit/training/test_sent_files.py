"""Files that ranks send: written into the training's folder, and never a reason to fail."""

from __future__ import annotations

import zlib

from trainlib._execution.events import FileSent
from trainlib._training.sent_files import SentFiles


def test_a_file_of_the_same_name_is_replaced(tmp_path):
    files = SentFiles(tmp_path)
    for text in (b"first", b"second"):
        assert files.write(FileSent("traces/rank_0.json", zlib.compress(text))) is None
    assert (tmp_path / "traces" / "rank_0.json").read_bytes() == b"second"


def test_a_file_that_cannot_be_written_is_said_once(tmp_path):
    (tmp_path / "traces").write_text("a file where the folder should be")
    files = SentFiles(tmp_path)
    sent = FileSent("traces/rank_0.json", zlib.compress(b"{}"))
    problem = files.write(sent)
    assert problem is not None
    assert problem.startswith(f"traces/rank_0.json could not be written to {tmp_path}: ")
    assert files.write(sent) is None
    assert files.write(FileSent("other.json", zlib.compress(b"{}"))) is None
    assert (tmp_path / "other.json").exists()
