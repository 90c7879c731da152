"""Small photographs of ten kinds: a deeper network, trained in every configuration of a grid."""

from kfp import dsl
from kfp.dsl import Dataset, Model, Output
from tasks import component, search


@component
def load(folder: str, raw: Output[Dataset]):
    """Each row of a picture in the package is one photograph of 32 by 32 points."""
    import json
    import os

    import numpy as np
    import tensorflow as tf

    def images(name: str):
        rows = tf.io.decode_png(tf.io.read_file(os.path.join(folder, name)), channels=3)
        return rows.numpy().reshape(-1, 32, 32, 3)

    def labels(name: str):
        with open(os.path.join(folder, name)) as file:
            return np.array(json.load(file), "uint8")

    with open(raw.path, "wb") as file:
        np.savez(
            file,
            train_images=np.concatenate([images(f"data_batch_{n}.png") for n in range(1, 6)]),
            train_labels=labels("train_lables.json"),
            test_images=images("test_batch.png"),
            test_labels=labels("test_lables.json"),
        )


@component
def define(architecture: Output[Model]) -> int:
    """The network before it has learnt anything, and how many numbers it is made of."""
    import keras
    from keras import layers

    network = keras.Sequential([keras.Input((32, 32, 3))])
    for filters in (32, 64, 128):
        for _ in range(2):
            network.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
            network.add(layers.BatchNormalization())
        network.add(layers.MaxPooling2D())
    network.add(layers.Flatten())
    network.add(layers.Dropout(0.2))
    network.add(layers.Dense(1024, activation="relu"))
    network.add(layers.Dropout(0.2))
    network.add(layers.Dense(10, activation="softmax"))
    with open(architecture.path, "w") as file:
        file.write(network.to_json())
    return network.count_params()


@dsl.pipeline(name="cifar10")
def cifar10(
    folder: str = "data",
    learning_rates: list = [0.001, 0.01],  # noqa: B006
    epochs: list = [25, 50, 100, 200],  # noqa: B006
    batch_sizes: list = [32, 64],  # noqa: B006
    optimizers: list = ["Adam", "SGD"],  # noqa: B006
) -> float:
    """Train and judge a network in every configuration.

    Args:
        folder: The directory of the images. examples/cifar10/download.sh fetches them.
        learning_rates: The learning rates to try.
        epochs: The numbers of epochs to try.
        batch_sizes: The batch sizes to try.
        optimizers: The optimizers to try, by their names in Keras.
    """
    found = search(
        raw=load(folder=folder).outputs["raw"],
        architecture=define().outputs["architecture"],
        learning_rates=learning_rates,
        epochs=epochs,
        batch_sizes=batch_sizes,
        optimizers=optimizers,
    )
    return found.output
