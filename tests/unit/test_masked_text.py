"""Secrets in the text of a program."""

from __future__ import annotations

import time

import pytest

from trainlib._masked_text import masked_text
from trainlib._secrets import MASK


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('+password = "hunter2"', f'+password = "{MASK}"'),
        ("+DB_PASSWORD='hunter2'  # ask Ada", f"+DB_PASSWORD='{MASK}'  # ask Ada"),
        ("+export AWS_SECRET_ACCESS_KEY=hunter2", f"+export AWS_SECRET_ACCESS_KEY={MASK}"),
        ("+  api_key: hunter2", f"+  api_key: {MASK}"),
        ('-    "apiKey": "hunter2",', f'-    "apiKey": "{MASK}",'),
        ('+os.environ["HF_TOKEN"] = "hunter2"', f'+os.environ["HF_TOKEN"] = "{MASK}"'),
        ('+    password: str | None = "hunter2"', f'+    password: str | None = "{MASK}"'),
        ('+connect("ada", password=b"hunter2", port=1)', f'+connect("ada", password=b"{MASK}", port=1)'),
        (r'+secret = "hunter\"2"', f'+secret = "{MASK}"'),
        ("+run --user ada --db-password hunter2 --port 1", f"+run --user ada --db-password {MASK} --port 1"),
        ("+run --api-key=hunter2", f"+run --api-key={MASK}"),
        ("+password = 1234", f"+password = {MASK}"),
        ("+db = postgres://ada:hunter2@host/x", f"+db = postgres://ada:{MASK}@host/x"),
        (
            "+-----BEGIN RSA PRIVATE KEY-----\n+hunter2\n+-----END RSA PRIVATE KEY-----\n",
            f"+-----BEGIN RSA PRIVATE KEY-----{MASK}-----END RSA PRIVATE KEY-----\n",
        ),
        ("+-----BEGIN PRIVATE KEY-----\n+hunter2", f"+-----BEGIN PRIVATE KEY-----{MASK}"),
    ],
)
def test_secrets_are_masked(text, expected):
    assert masked_text(text) == expected
    assert masked_text(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "+lr = 0.1",
        '+name = "ada"',
        "+max_tokens = 5",
        "+token = 5",
        "+use_password = True",
        "+password = None",
        '+password = ""',
        "+def login(user: str, password: str) -> None:",
        '+password = os.environ["DB_PASSWORD"]',
        "+password = getpass.getpass()",
        "+if password == other:",
        "+data = s3://bucket/data.csv",
        "+# the password is asked for",
    ],
)
def test_the_rest_stays_as_it_is(text):
    assert masked_text(text) == text


@pytest.mark.parametrize(
    "text", ["x" * 10**6, "a=" + "x" * 10**6 + '"', "password: " + "a, " * 10**5, "://" * 10**5, "--x " * 10**5]
)
def test_long_lines_take_no_longer_than_short_ones(text):
    began = time.process_time()
    masked_text(text)
    assert time.process_time() - began < 5
