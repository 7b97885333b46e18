"""Early errors for setups in which TensorFlow fails without a clear reason."""

from __future__ import annotations

from typing import Any

from trainlib.errors import KerasVersionError, TooFewWorkersError
from trainlib.tensorflow import _stalls as stalls


def is_keras_3(thing: object) -> bool:
    """Whether a model or an optimizer is from Keras 3. Keras 2 is the package ``tf_keras``."""
    return any(kind.__module__.startswith("keras.") for kind in type(thing).__mro__)


def install(world_size: int, timeout_s: float) -> None:
    """Check the strategies and models that the training function of this process creates."""
    import wrapt
    from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended

    def make_strategy(make: Any, _: Any, args: Any, kwargs: Any) -> Any:
        if world_size == 1:
            raise TooFewWorkersError(
                "MultiWorkerMirroredStrategy needs several workers, but this training has one. Set "
                "ScalingConfig(num_workers=2) or more, or use tf.distribute.MirroredStrategy"
            )
        stalls.watch(timeout_s)  # before it is created, because creating it waits for the other workers
        return make(*args, **kwargs)

    wrapt.wrap_function_wrapper(CollectiveAllReduceExtended, "__init__", make_strategy)
    wrapt.register_post_import_hook(_guard_keras_3, "keras.src.backend.tensorflow.trainer")


def _guard_keras_3(trainer_module: Any) -> None:
    """Refuse Keras 3 models on several workers, where ``fit`` fails with an obscure error about PerReplica."""
    import tensorflow as tf
    import wrapt

    def make_model(make: Any, model: Any, args: Any, kwargs: Any) -> None:
        make(*args, **kwargs)
        strategy = tf.distribute.get_strategy()
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            raise KerasVersionError(
                f"{type(model).__name__} is a Keras 3 model, but MultiWorkerMirroredStrategy trains only Keras 2 models. In workers "
                "tf.keras is Keras 2: build the model from `tf.keras` (or `tf_keras`) instead of `keras`"
            )

    wrapt.wrap_function_wrapper(trainer_module.TensorFlowTrainer, "__init__", make_model)
