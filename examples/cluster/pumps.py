"""Which pump fails next? A small workload in five steps, each of them a Pod.

    ingest        writes readings of two sites to the volume, and labels to the bucket
    prepare SITE  scales the readings of one site
    train         fits a line to the prepared readings of the north and the labels
    evaluate      measures the model

It knows nothing of Clew: the volume is a directory, the bucket is reached by boto3.
"""

import csv
import json
import os
import random
import sys
from pathlib import Path

import boto3

DATA = Path("/data")
SETTINGS = Path("/settings/settings.json")
BUCKET = os.environ.get("BUCKET", "")
LABELS = "labels.csv"
SITES = ("north", "south")
ROWS = int(os.environ.get("ROWS", "500"))


def ingest():
    """Make the readings; a real one would fetch them."""
    numbers = random.Random(7)
    labels = []
    for site in SITES:
        place = DATA / "raw" / f"{site}.csv"
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("w", newline="") as file:
            rows = csv.writer(file)
            for pump in range(ROWS):
                load, heat = numbers.gauss(50, 12), numbers.gauss(70, 9)
                rows.writerow([pump, f"{load:.3f}", f"{heat:.3f}"])
                if site == "north":
                    labels.append(f"{pump},{0.8 * load + 0.3 * heat + numbers.gauss(0, 4):.3f}")
    bucket().put_object(Bucket=BUCKET, Key=LABELS, Body="\n".join(labels).encode())


def prepare(site):
    rows = read_rows(DATA / "raw" / f"{site}.csv")
    place = DATA / "prepared" / f"{site}.csv"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("w", newline="") as file:
        csv.writer(file).writerows([pump, load / 100, heat / 100] for pump, load, heat in rows)


def train():
    """Gradient descent; the ConfigMap says how many rounds."""
    rounds = json.loads(SETTINGS.read_text())["rounds"]
    rows = read_rows(DATA / "prepared" / "north.csv")
    text = bucket().get_object(Bucket=BUCKET, Key=LABELS)["Body"].read().decode()
    wanted = {float(pump): float(label) for pump, label in csv.reader(text.splitlines())}
    weights = [0.0, 0.0, 0.0]
    for _ in range(rounds):
        for pump, load, heat in rows:
            known = (load, heat, 1.0)
            error = sum(w * x for w, x in zip(weights, known, strict=True)) - wanted[pump]
            weights = [w - 0.05 * error * x for w, x in zip(weights, known, strict=True)]
    write(DATA / "model.json", {"weights": weights})


def evaluate():
    weights = json.loads((DATA / "model.json").read_text())["weights"]
    load, heat, bias = weights
    write(DATA / "metrics.json", {"load": load, "heat": heat, "bias": bias})


def read_rows(place):
    with place.open(newline="") as file:
        return [tuple(map(float, row)) for row in csv.reader(file)]


def write(place, document):
    place.write_text(json.dumps(document, indent=1) + "\n")


def bucket():
    return boto3.client("s3", endpoint_url=os.environ.get("AWS_ENDPOINT_URL"))


steps = {"ingest": ingest, "prepare": prepare, "train": train, "evaluate": evaluate}
steps[sys.argv[1]](*sys.argv[2:])
