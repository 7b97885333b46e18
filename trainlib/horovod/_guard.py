"""An error for what Horovod would do wrongly without a word."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from trainlib.errors import KerasVersionError
from trainlib.tensorflow._guard import is_keras_3


@cache
def install() -> None:
    """Watch over the training function of this process."""
    if find_spec("tensorflow") is not None:
        import wrapt

        wrapt.register_post_import_hook(_guard_keras_3, "horovod._keras")


def _guard_keras_3(implementation: Any) -> None:
    """Let no optimizer of Keras 3 be wrapped: it never calls what Horovod overrides, so nothing would be averaged."""
    import wrapt

    def wrap_optimizer(wrap: Any, _: Any, args: Any, kwargs: Any) -> Any:
        optimizer = kwargs["optimizer"] if "optimizer" in kwargs else args[1]
        if is_keras_3(optimizer):
            raise KerasVersionError(
                f"{type(optimizer).__name__} is an optimizer of Keras 3, with which hvd.DistributedOptimizer does not average "
                "gradients. In workers tf.keras is Keras 2: use an optimizer and a model from `tf.keras` (or `tf_keras`) "
                "instead of `keras`, or take the gradients with tf.GradientTape and average them with hvd.grouped_allreduce"
            )
        return wrap(*args, **kwargs)

    wrapt.wrap_function_wrapper(implementation, "create_distributed_optimizer", wrap_optimizer)
