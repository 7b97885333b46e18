"""A sweep on digits with ASHA: the total number of epochs, and the best accuracy."""

from bench.scripts.digits_sweep import sweep
from bench.scripts.side import finish
from bench.scripts.sweeps import EPOCHS
from trainlib.tune import ASHAScheduler

epochs, best = sweep(ASHAScheduler(max_t=EPOCHS, grace_period=3, reduction_factor=3))
finish(epochs=epochs, accuracy=100 * best)
