"""An early error where Horovod would silently not average gradients."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

from trainlib.errors import KerasVersionError
from trainlib.tensorflow._guard import is_keras_3


@cache
def install() -> None:
    """Check the optimizers that the training function of this process wraps."""
    if find_spec("tensorflow") is not None:
        import wrapt

        wrapt.register_post_import_hook(_guard_keras_3, "horovod._keras")


def _guard_keras_3(implementation: Any) -> None:
    """Refuse Keras 3 optimizers: they never call the method that Horovod overrides, so nothing would be averaged."""
    import wrapt

    def wrap_optimizer(wrap: Any, _: Any, args: Any, kwargs: Any) -> Any:
        optimizer = kwargs["optimizer"] if "optimizer" in kwargs else args[1]
        if is_keras_3(optimizer):
            raise KerasVersionError(
                f"hvd.DistributedOptimizer does not average the gradients of {type(optimizer).__name__}, which is a Keras 3 "
                "optimizer. In workers tf.keras is Keras 2: use an optimizer and a model from `tf.keras` (or `tf_keras`) "
                "instead of `keras`, or compute gradients with tf.GradientTape and average them with hvd.grouped_allreduce"
            )
        return wrap(*args, **kwargs)

    wrapt.wrap_function_wrapper(implementation, "create_distributed_optimizer", wrap_optimizer)
