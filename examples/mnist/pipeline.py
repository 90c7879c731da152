"""Handwritten digits: a small convolutional network, trained in every configuration of a grid."""

from kfp import dsl
from kfp.dsl import Dataset, Model, Output
from tasks import component, search


@component
def load(folder: str, raw: Output[Dataset]):
    """The four files of MNIST, as they were published."""
    import os

    import numpy as np

    def array(name: str):
        with open(os.path.join(folder, name), "rb") as file:
            dimensions = file.read(4)[3]
            shape = np.frombuffer(file.read(4 * dimensions), ">i4")
            return np.frombuffer(file.read(), "uint8").reshape(shape)

    with open(raw.path, "wb") as file:
        np.savez(
            file,
            train_images=array("train-images-idx3-ubyte"),
            train_labels=array("train-labels-idx1-ubyte"),
            test_images=array("t10k-images-idx3-ubyte"),
            test_labels=array("t10k-labels-idx1-ubyte"),
        )


@component
def define(architecture: Output[Model]) -> int:
    """The network before it has learnt anything, and how many numbers it is made of."""
    import keras
    from keras import layers

    def convolution(filters: int):
        return layers.Conv2D(filters, 5, padding="same", activation="relu")

    network = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            convolution(24),
            layers.MaxPooling2D(),
            convolution(48),
            layers.MaxPooling2D(),
            convolution(64),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(256, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    with open(architecture.path, "w") as file:
        file.write(network.to_json())
    return network.count_params()


@dsl.pipeline(name="mnist")
def mnist(
    folder: str = "data",
    learning_rates: list = [0.001, 0.01],  # noqa: B006
    epochs: list = [10, 25, 50],  # noqa: B006
    batch_sizes: list = [32, 64],  # noqa: B006
    optimizers: list = ["Adam", "SGD"],  # noqa: B006
) -> float:
    """Train and judge a network in every configuration.

    Args:
        folder: The directory of the images. examples/mnist/download.sh fetches them.
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
