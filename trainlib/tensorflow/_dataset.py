"""Passing a dataset shard to a strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["prepare_dataset_shard"]


def prepare_dataset_shard(tf_dataset_shard: tf.data.Dataset) -> tf.data.Dataset:
    """Turn off auto-sharding: the dataset is already this worker's shard, and a strategy must not split it again.

    Example:
        >>> import tensorflow as tf
        >>> from trainlib.tensorflow import prepare_dataset_shard
        >>> len(prepare_dataset_shard(tf.data.Dataset.range(3)))
        3
    """
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return tf_dataset_shard.with_options(options).prefetch(tf.data.AUTOTUNE)
