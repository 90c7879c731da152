"""Ask for predictions, and say how long the answers took, as lines of JSON.

First the round-trip time to the Pod at ADDRESS, then the response time for each of the numbers of
predictions in REQUESTS: the median of REPEATS requests, each with a connection of its own.
"""

import json
import os
import random
import socket
import statistics
import time
import urllib.request

ADDRESS, PORT = os.environ["ADDRESS"], 8080
REQUESTS = [int(word) for word in os.environ["REQUESTS"].split(",")]
REPEATS = int(os.environ["REPEATS"])
PROBES = 10


def connect():
    """A connection is made in one round trip."""
    began = time.monotonic()
    socket.create_connection((ADDRESS, PORT)).close()
    return time.monotonic() - began


def ask(trips):
    began = time.monotonic()
    with urllib.request.urlopen(f"http://{ADDRESS}:{PORT}/", json.dumps(trips).encode()) as answer:
        tips = json.load(answer)
    assert len(tips) == len(trips)
    return time.monotonic() - began


def make_trip(chance):
    miles = round(chance.uniform(0.3, 12), 1)
    return [round(3.25 + 2.1 * miles, 2), chance.randint(0, 1), miles, round(miles * 200), 17]


print(json.dumps({"rtt_ms": round(1000 * min(connect() for _ in range(PROBES)), 3)}))
for count in REQUESTS:
    trips = [make_trip(random.Random(number)) for number in range(count)]
    seconds = statistics.median(ask(trips) for _ in range(REPEATS))
    print(json.dumps({"predictions": count, "seconds": round(seconds, 4)}), flush=True)
