"""One step each, with its retries: Prefect tasks.

Each is imported at its first use: a flow needs few of them.
"""

from typing import TYPE_CHECKING

from trainlib._lazy_package import import_when_asked

if TYPE_CHECKING:
    from trainlib.tasks.evaluate import evaluate
    from trainlib.tasks.predict import predict
    from trainlib.tasks.preprocess import preprocess
    from trainlib.tasks.promote import promote, roll_back
    from trainlib.tasks.prune import prune
    from trainlib.tasks.register_model import register_model
    from trainlib.tasks.register_version import register_version
    from trainlib.tasks.select_checkpoint import select_checkpoint
    from trainlib.tasks.train import train
    from trainlib.tasks.trial import trial

__all__ = [
    "evaluate",
    "predict",
    "preprocess",
    "promote",
    "prune",
    "register_model",
    "register_version",
    "roll_back",
    "select_checkpoint",
    "train",
    "trial",
]

import_when_asked(__name__, {name: f"{__name__}.{'promote' if name == 'roll_back' else name}" for name in __all__})
