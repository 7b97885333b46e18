"""Everything that a test session records goes to one temporary folder, and it uses no server but its own."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.alone import pytest_configure, pytest_runtest_protocol  # noqa: F401
from tests.order import pytest_collection_modifyitems  # noqa: F401
from tests.process_logs import pytest_runtest_makereport, pytest_runtest_setup  # noqa: F401

# Here and not in the fixture: Prefect reads its settings when it is imported, which test modules do.
HOME = Path(tempfile.mkdtemp(prefix="trainlib-tests-"))
os.environ["TRAINLIB_HOME"] = str(HOME)
os.environ["PREFECT_HOME"] = str(HOME / "prefect")
os.environ["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "120"  # on a busy machine, its 20 s are not enough
# So that a test finds workers warm that one before it has used, and Ray keeps its processes that read data. But not for long: each idle
# process of Ray looks a hundred times a second whether there is a signal, which takes a hundredth of a core. Starting one takes one or two
# seconds of it, and more with a framework.
os.environ["TRAINLIB_WORKER_IDLE_S"] = "300"
os.environ["RAY_idle_worker_killing_time_threshold_ms"] = "120000"  # noqa: SIM112
# Or RLlib, where a test imports it, would import TensorFlow, and switch its eager mode off for the tests that come later.
os.environ["RLLIB_TEST_NO_TF_IMPORT"] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of some hundred processes would compile trainlib anew
for _address in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI", "RAY_ADDRESS"):
    os.environ.pop(_address, None)

# The same examples each time, however busy the machine is.
hypothesis.settings.register_profile("trainlib", derandomize=True, deadline=None)
hypothesis.settings.load_profile("trainlib")


gc.disable()  # until everything is imported


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of the search for garbage: all frameworks are, and every search would go through them."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[Path]:
    """The folder, for as long as the session lasts."""
    yield HOME
    shutil.rmtree(HOME, ignore_errors=True)
