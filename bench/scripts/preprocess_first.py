"""The flow `preprocess`, for the first time."""

import time

from bench.scripts.side import finish, folder
from bench.scripts.table import spec_for
from trainlib.flows import _embedded as embedded
from trainlib.flows import preprocess

embedded.start()
embedded.wait()
spec = spec_for(folder())
started = time.perf_counter()
preprocess(**dict(spec))
finish(preprocess_s=time.perf_counter() - started)
