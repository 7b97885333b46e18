import numpy as np
import trainlib as train
from trainlib import ScalingConfig
from trainlib.tensorflow import TensorflowTrainer

worker_batch_size = 8


def train_func():
    import tensorflow as tf

    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros", input_shape=(4,))])
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")

    batch_size = worker_batch_size * train.world_size()

    features = np.arange(64, dtype="float32").reshape(16, 4) / 64
    dataset = tf.data.Dataset.from_tensor_slices((features, features.sum(1, keepdims=True))).batch(batch_size)
    history = model.fit(dataset, epochs=5, verbose=0)
    for loss in history.history["loss"]:
        train.report({"loss": loss})
    return [weights.tolist() for weights in model.get_weights()]


trainer = TensorflowTrainer(train_func, scaling_config=ScalingConfig(num_workers=2))
result = trainer.fit()
