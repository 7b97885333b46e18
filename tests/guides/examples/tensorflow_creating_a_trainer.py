import trainlib as train


def train_func():
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    train.report({"replicas": strategy.num_replicas_in_sync})
    return strategy.cluster_resolver.task_id


from trainlib import ScalingConfig  # noqa: E402
from trainlib.tensorflow import TensorflowTrainer  # noqa: E402

# For GPU Training, set `use_gpu` to True.
use_gpu = False
trainer = TensorflowTrainer(train_func, scaling_config=ScalingConfig(use_gpu=use_gpu, num_workers=2))
result = trainer.fit()
