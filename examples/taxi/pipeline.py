"""What will the passenger tip? Chicago's taxi trips, and a model that XGBoost learns from them."""

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

component = dsl.component(base_image="docker.io/clew/taxi:1")
"""In an image with what they import, on a cluster: see Containerfile."""


@component
def fetch(trips: str, since: str, until: str, table: Output[Dataset]):
    """The trips that began in a span of time: the tip, then what is known before it is given."""
    import csv
    from datetime import UTC, datetime

    as_they_are = ["fare", "trip_miles", "trip_seconds", "trip_start_hour"]
    areas = ["pickup_community_area", "dropoff_community_area"]
    begin, end = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (since, until))
    count = 0
    with open(trips, newline="") as source, open(table.path, "w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(["tips", "by_card", *as_they_are, *areas])
        for trip in csv.DictReader(source):
            began = datetime.fromtimestamp(int(trip["trip_start_timestamp"]), UTC)
            if begin <= began < end:
                by_card = int(trip["payment_type"] == "Credit Card")
                known = [trip[name] for name in (*as_they_are, *areas)]
                writer.writerow([trip["tips"], by_card, *known])
                count += 1
    if not count:
        raise ValueError(f"{trips} has no trip from {since} until {until}")
    table.metadata["trips"] = count
    print(f"{count} trips from {since} until {until}")


@component
def train(
    table: Input[Dataset],
    learning_rate: float,
    iterations: int,
    model: Output[Model],
):
    import numpy as np
    import xgboost

    rows = np.genfromtxt(table.path, delimiter=",", skip_header=1)
    data = xgboost.DMatrix(rows[:, 1:], label=rows[:, 0])
    settings = {"objective": "reg:squarederror", "learning_rate": learning_rate, "max_depth": 4}
    booster = xgboost.train(settings, data, num_boost_round=iterations)
    with open(model.path, "wb") as file:
        file.write(booster.save_raw("ubj"))
    model.framework = "xgboost"
    print(f"{iterations} trees from {len(rows)} trips")


@component
def true_values(table: Input[Dataset], tips: Output[Dataset]):
    """What the passengers really tipped: apart from the rest, for the model must not see it."""
    import csv

    with open(table.path, newline="") as source, open(tips.path, "w") as target:
        target.writelines(f"{row['tips']}\n" for row in csv.DictReader(source))


@component
def predict(table: Input[Dataset], model: Input[Model], tips: Output[Dataset]):
    import numpy as np
    import xgboost

    with open(model.path, "rb") as file:
        booster = xgboost.Booster(model_file=bytearray(file.read()))
    rows = np.genfromtxt(table.path, delimiter=",", skip_header=1)
    np.savetxt(tips.path, booster.predict(xgboost.DMatrix(rows[:, 1:])), fmt="%.4f")


@component
def evaluate(truth: Input[Dataset], predicted: Input[Dataset], scores: Output[Metrics]) -> float:
    """How far off the predictions are, in dollars, and what part of the variance is explained."""
    import json

    import numpy as np

    true, guess = np.loadtxt(truth.path), np.loadtxt(predicted.path)
    error = guess - true
    found = {
        "trips": len(true),
        "mean absolute error": round(float(np.abs(error).mean()), 4),
        "root mean squared error": round(float(np.sqrt((error**2).mean())), 4),
        "variance explained": round(float(1 - (error**2).mean() / true.var()), 4),
    }
    with open(scores.path, "w") as file:
        json.dump(found, file, indent=2)
        file.write("\n")
    for name, value in found.items():
        scores.log_metric(name, value)
    return found["mean absolute error"]


@dsl.pipeline(name="taxi-tips")
def taxi_tips(
    trips: str = "trips.csv",
    since: str = "2013-01-01",
    split: str = "2016-01-01",
    until: str = "2017-01-01",
    learning_rate: float = 0.3,
    iterations: int = 100,
) -> float:
    """Learn from some years, be judged by the next.

    Args:
        trips: A CSV file of taxi trips. examples/taxi/download.py fetches one.
        since: The first day to learn from.
        split: The first day to be judged by.
        until: The day after the last.
        learning_rate: How much each tree corrects, from 0 to 1.
        iterations: The number of trees.
    """
    training = fetch(trips=trips, since=since, until=split)
    test = fetch(trips=trips, since=split, until=until)
    model = train(
        table=training.outputs["table"], learning_rate=learning_rate, iterations=iterations
    )
    truth = true_values(table=test.outputs["table"])
    predicted = predict(table=test.outputs["table"], model=model.outputs["model"])
    judged = evaluate(truth=truth.outputs["tips"], predicted=predicted.outputs["tips"])
    return judged.outputs["Output"]
