"""Requests of 1 kB to several endpoints in turn, by a stock boto3; prints seconds for each.

python s3_requests.py ROUNDS KEY SECRET ENDPOINT...

Prints {"get": [[seconds for each endpoint], …], "put": …}. One request to each endpoint is a round,
and each round begins with another one, so that noise on the machine meets all alike.
"""

import json
import sys
import time

import boto3
from botocore.config import Config

ROUNDS, KEY, SECRET, ENDPOINTS = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
WARM = 20
BODY = b"x" * 1024

clients = [
    boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name="us-east-1",
        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}),
    )
    for endpoint in ENDPOINTS
]
clients[0].create_bucket(Bucket="bench")


def put(client, number):
    client.put_object(Bucket="bench", Key=f"o{number % 100}", Body=BODY)


def get(client, number):
    client.get_object(Bucket="bench", Key=f"o{number % 100}")["Body"].read()


found = {}
for name, ask in (("put", put), ("get", get)):
    rounds = []
    for number in range(ROUNDS + WARM):
        seconds = [0.0] * len(clients)
        for turn in range(len(clients)):
            which = (number + turn) % len(clients)
            begin = time.perf_counter()
            ask(clients[which], number)
            seconds[which] = time.perf_counter() - begin
        rounds.append(seconds)
    found[name] = rounds[WARM:]
sys.stdout.write(json.dumps(found))
