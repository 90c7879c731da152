"""What image classifiers share: all that follows once images are loaded and a network is defined.

Images and labels travel as one file of arrays, `train_images`, `train_labels`, `test_images`
and `test_labels`; an architecture as Keras' JSON; a trained network in a directory.
"""

from kfp import dsl
from kfp.dsl import Artifact, Dataset, Input, Markdown, Metrics, Model, Output

component = dsl.component(base_image="docker.io/clew/keras:1")
"""In an image with what they import, on a cluster: see mnist/Containerfile."""


@component
def normalise(raw: Input[Dataset], data: Output[Dataset]):
    """From bytes to numbers between 0 and 1, and always with an axis for colours."""
    import numpy as np

    with np.load(raw.path) as arrays:
        found = dict(arrays)
    for name in ("train_images", "test_images"):
        images = found[name].astype("float32") / 255
        found[name] = images if images.ndim == 4 else images[..., np.newaxis]
    with open(data.path, "wb") as file:
        np.savez(file, **found)


@component
def configurations(learning_rates: list, epochs: list, batch_sizes: list, optimizers: list) -> list:
    """Every combination. What is quickest to train comes first."""
    from itertools import product

    return [
        {"epochs": n, "optimizer": name, "learning_rate": rate, "batch_size": size}
        for n, name, rate, size in product(epochs, optimizers, learning_rates, batch_sizes)
    ]


@component
def train(
    data: Input[Dataset],
    architecture: Input[Model],
    learning_rate: float,
    epochs: int,
    batch_size: int,
    optimizer: str,
    model: Output[Model],
    logs: Output[Artifact],
):
    """`logs` is for `tensorboard --logdir`; `model` holds the architecture and the weights."""
    import os
    import shutil

    import keras
    import numpy as np

    keras.utils.set_random_seed(1)
    with open(architecture.path) as file:
        network = keras.models.model_from_json(file.read())
    network.compile(
        optimizer=keras.optimizers.get(
            {"class_name": optimizer, "config": {"learning_rate": learning_rate}}
        ),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    with np.load(data.path) as arrays:
        network.fit(
            arrays["train_images"],
            arrays["train_labels"],
            validation_data=(arrays["test_images"], arrays["test_labels"]),
            epochs=epochs,
            batch_size=batch_size,
            callbacks=[keras.callbacks.TensorBoard(log_dir=logs.path)],
            verbose=2,
        )
    os.makedirs(model.path)
    shutil.copy(architecture.path, os.path.join(model.path, "architecture.json"))
    network.save_weights(os.path.join(model.path, "trained.weights.h5"))
    model.framework = "keras"


@component
def evaluate(data: Input[Dataset], model: Input[Model], scores: Output[Metrics]) -> float:
    """The share of test images that are told right; of training images as well, to compare."""
    import json
    import os

    import keras
    import numpy as np

    with open(os.path.join(model.path, "architecture.json")) as file:
        network = keras.models.model_from_json(file.read())
    network.load_weights(os.path.join(model.path, "trained.weights.h5"))
    found = {}
    with np.load(data.path) as arrays:
        for part in ("train", "test"):
            chances = network.predict(arrays[f"{part}_images"], batch_size=256, verbose=0)
            right = chances.argmax(axis=1) == arrays[f"{part}_labels"]
            found[f"{part} accuracy"] = round(float(right.mean()), 4)
    with open(scores.path, "w") as file:
        json.dump(found, file)
    for name, value in found.items():
        scores.log_metric(name, value)
    return found["test accuracy"]


@component
def compare(tried: list, accuracies: list, table: Output[Markdown]) -> float:
    """All configurations, the best one first."""
    names = list(tried[0])
    lines = ["| " + " | ".join([*names, "test accuracy"]) + " |", "| --- " * (len(names) + 1) + "|"]
    ranked = sorted(zip(accuracies, tried, strict=True), key=lambda pair: -pair[0])
    for accuracy, one in ranked:
        lines.append("| " + " | ".join(str(one[name]) for name in names) + f" | {accuracy:.2%} |")
    with open(table.path, "w") as file:
        file.write("\n".join(lines) + "\n")
    return ranked[0][0]


@dsl.pipeline(name="search", description="Train and judge a network in every configuration.")
def search(
    raw: Input[Dataset],
    architecture: Input[Model],
    learning_rates: list,
    epochs: list,
    batch_sizes: list,
    optimizers: list,
) -> float:
    data = normalise(raw=raw).outputs["data"]
    grid = configurations(
        learning_rates=learning_rates,
        epochs=epochs,
        batch_sizes=batch_sizes,
        optimizers=optimizers,
    ).output
    # One at a time: a training already keeps all cores busy.
    with dsl.ParallelFor(items=grid, parallelism=1) as chosen:
        model = train(
            data=data,
            architecture=architecture,
            learning_rate=chosen.learning_rate,
            epochs=chosen.epochs,
            batch_size=chosen.batch_size,
            optimizer=chosen.optimizer,
        ).outputs["model"]
        accuracy = evaluate(data=data, model=model)
    best = compare(tried=grid, accuracies=dsl.Collected(accuracy.outputs["Output"]))
    return best.outputs["Output"]
