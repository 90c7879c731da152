"""What will the passenger tip? A linear model, learned by gradient descent, that answers requests.

    train       learns from the trips, and prints the model as one line of JSON
    predict     answers requests by the model in the file MODEL
    monolith    both in one process: learns, then answers requests

`POST /` takes a JSON list of trips, each with its FEATURES, and answers with the list of their
tips. LEARNING_RATE and ITERATIONS say how long it learns.
"""

import csv
import json
import os
import sys
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

TRIPS = Path("/data/trips.csv")
SPLIT = datetime(
    2016, 1, 1, tzinfo=UTC
).timestamp()  # learns from trips before, is judged by others
FEATURES = ("fare", "by_card", "trip_miles", "trip_seconds", "trip_start_hour")
PORT = 8080


def train():
    """The model, how long it took, and its error on trips that it does not know, as a part of the
    largest tip."""
    began = time.monotonic()
    rate, iterations = float(os.environ["LEARNING_RATE"]), int(os.environ["ITERATIONS"])
    known, tips, is_new = read_trips()
    low, high, most = known.min(0), known.max(0), tips.max()
    known, tips = (known - low) / (high - low), tips / most
    learned, wanted = known[~is_new], tips[~is_new]
    weights, bias = np.zeros(known.shape[1]), 0.0
    for _ in range(iterations):
        error = learned @ weights + bias - wanted
        weights -= rate * 2 * (learned.T @ error) / len(error)
        bias -= rate * 2 * error.mean()
    error = known[is_new] @ weights + bias - tips[is_new]
    return {
        "seconds": round(time.monotonic() - began, 3),
        "iterations": iterations,
        "learning_rate": rate,
        "rmse": round(float(np.sqrt((error**2).mean())), 5),
        # in dollars, and for features as they are
        "weights": (weights / (high - low) * most).tolist(),
        "bias": float((bias - (weights * low / (high - low)).sum()) * most),
    }


def read_trips():
    """The features of each trip, its tip, and whether the model is judged by it."""
    with TRIPS.open(newline="") as file:
        trips = list(csv.DictReader(file))
    for trip in trips:
        trip["by_card"] = trip["payment_type"] == "Credit Card"
    known = np.array([[float(trip[name] or 0) for name in FEATURES] for trip in trips])
    tips = np.array([float(trip["tips"]) for trip in trips])
    began = np.array([float(trip["trip_start_timestamp"]) for trip in trips])
    return known, tips, began >= SPLIT


class Predictions(BaseHTTPRequestHandler):
    model = {}
    disable_nagle_algorithm = True

    def do_GET(self):
        self.answer("ready")

    def do_POST(self):
        trips = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tips = np.array(trips) @ np.array(self.model["weights"]) + self.model["bias"]
        self.answer(tips.round(2).tolist())

    def answer(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Requests are not logged."""


def predict(model):
    Predictions.model = model
    ThreadingHTTPServer(("", PORT), Predictions).serve_forever()


def main(step):
    model = json.loads(Path(os.environ["MODEL"]).read_text()) if step == "predict" else train()
    if step != "predict":
        print(json.dumps(model), flush=True)
    if step != "train":
        predict(model)


main(sys.argv[1])
