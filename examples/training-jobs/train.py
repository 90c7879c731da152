"""Train a network on MNIST with one replica of it in each worker of a TFJob.

Each worker learns from its share of the images; after each batch the workers add up their
gradients, so that all have the same weights. TF_CONFIG, which the operator sets, says who they are.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow import keras


def read_images(folder: Path, part: str, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Images as numbers between 0 and 1, and what they show; at most so many."""
    images = read_bytes(folder / f"{part}-images-idx3-ubyte", 16).reshape(-1, 28, 28, 1)
    labels = read_bytes(folder / f"{part}-labels-idx1-ubyte", 8)
    return images[:limit].astype("float32") / 255, labels[:limit].astype("int64")


def read_bytes(file: Path, header: int) -> np.ndarray:
    packed = Path(f"{file}.gz")
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else file.read_bytes()
    return np.frombuffer(content, np.uint8, offset=header)


def make_network(learning_rate: float, momentum: float) -> keras.Model:
    layers = keras.layers
    network = keras.Sequential(
        [
            layers.Conv2D(24, 5, activation="relu", input_shape=(28, 28, 1)),
            layers.MaxPooling2D(),
            layers.Conv2D(48, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10),
        ]
    )
    network.compile(
        optimizer=keras.optimizers.SGD(learning_rate=learning_rate, momentum=momentum),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return network


def batches(images: np.ndarray, labels: np.ndarray, size: int, *, repeat: bool) -> tf.data.Dataset:
    """All images; each worker takes its share of each batch."""
    found = tf.data.Dataset.from_tensor_slices((images, labels))
    found = (found.shuffle(len(images), seed=1).repeat() if repeat else found).batch(size)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return found.with_options(options)


def is_chief(strategy: tf.distribute.MultiWorkerMirroredStrategy) -> bool:
    resolver = strategy.cluster_resolver
    return resolver.task_type in (None, "chief") or (
        resolver.task_type == "worker"
        and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().as_dict()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--per_worker_batch", type=int, default=128)
    parser.add_argument("--learning_rate", type=float, default=0.001)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--data", type=Path, default=Path("/data"))
    parser.add_argument("--results", type=Path, default=Path("/data/results"))
    parser.add_argument("--images", type=int, default=60_000, help="how many to learn from")
    given = parser.parse_args()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    size = given.per_worker_batch * strategy.num_replicas_in_sync
    images, labels = read_images(given.data, "train", given.images)
    keras.utils.set_random_seed(1)
    with strategy.scope():
        network = make_network(given.learning_rate, given.momentum)
    chief = is_chief(strategy)
    callbacks = [keras.callbacks.TensorBoard(str(given.results / "logs"))] if chief else []
    history = network.fit(
        batches(images, labels, size, repeat=True),
        epochs=given.epochs,
        steps_per_epoch=max(len(images) // size, 1),
        callbacks=callbacks,
        verbose=2 if chief else 0,
    )
    # Every worker takes part in this: it, too, adds up over all of them.
    tests = batches(*read_images(given.data, "t10k", given.images), size, repeat=False)
    loss, accuracy = network.evaluate(tests, verbose=0)
    if chief:
        given.results.mkdir(parents=True, exist_ok=True)
        network.save_weights(str(given.results / "weights.h5"))
        found = {
            "workers": strategy.num_replicas_in_sync,
            "losses": [round(float(each), 4) for each in history.history["loss"]],
            "test accuracy": round(float(accuracy), 4),
            "test loss": round(float(loss), 4),
        }
        (given.results / "result.json").write_text(json.dumps(found) + "\n")
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
