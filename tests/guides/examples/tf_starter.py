#: ours: guide 003 includes a file of this name. Its function is ported as guide 001 says
import numpy as np

from trainlib import train

worker_batch_size = 8


def build_model():
    import tensorflow as tf

    return tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(4,))])


def train_func():
    import tensorflow as tf
#: guide 001:145
    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        #: instead of: model = ... # build model
        #: because: ... stands for one's own model
        model = build_model()
        model.compile()
        #: ours: what this model is trained with
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")

#: guide 001:158 after
    batch_size = worker_batch_size * train.world_size()
    #: ours: the training itself, and what the test looks at
    features = np.arange(64, dtype="float32").reshape(16, 4) / 64
    dataset = tf.data.Dataset.from_tensor_slices((features, features.sum(1, keepdims=True))).batch(batch_size)
    history = model.fit(dataset, epochs=5, verbose=0)
    for loss in history.history["loss"]:
        train.report({"loss": loss})
    return model.distribute_strategy.num_replicas_in_sync, [weights.tolist() for weights in model.get_weights()]

#: guide 001:195
from trainlib import ScalingConfig
from trainlib.tensorflow import TensorflowTrainer
# For GPU Training, set `use_gpu` to True.
use_gpu = False
trainer = TensorflowTrainer(
    train_func,
    scaling_config=ScalingConfig(use_gpu=use_gpu, num_workers=2)
)

#: ours: to show that it runs
trainer.fit()
