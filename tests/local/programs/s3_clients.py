"""What users do with objects, with boto3 and s3fs; knows nothing of Clew.

    python s3_clients.py ENDPOINT ingest|train|misuse

Prints a JSON document with what came back, for the test to check.
"""

import io
import json
import sys
import urllib.request

import boto3
import s3fs
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

ENDPOINT = sys.argv[1]
KEY, SECRET = "AKIAEXAMPLEKEY", "secret-canary-of-the-tests"
PART = 5 << 20
PARTS = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART)
found = {}

client = boto3.client(
    "s3",
    endpoint_url=ENDPOINT,
    aws_access_key_id=KEY,
    aws_secret_access_key=SECRET,
    region_name="us-east-1",
    config=Config(
        retries={"max_attempts": 0}, signature_version="s3v4", s3={"addressing_style": "path"}
    ),
)
files = s3fs.S3FileSystem(
    key=KEY,
    secret=SECRET,
    endpoint_url=ENDPOINT,
    client_kwargs={"region_name": "us-east-1"},
    config_kwargs={"s3": {"addressing_style": "path"}},
)


def ingest() -> None:
    client.create_bucket(Bucket="lake")
    client.put_bucket_versioning(Bucket="lake", VersioningConfiguration={"Status": "Enabled"})
    client.create_bucket(Bucket="plain")
    client.put_object(Bucket="lake", Key="raw.csv", Body=b"a,b\n1,2\n")
    client.put_object(Bucket="lake", Key="odd/ü +&=?%2F\n.txt", Body=b"odd")
    client.upload_fileobj(io.BytesIO(b"z" * (2 * PART + 7)), "plain", "big", Config=PARTS)
    client.copy_object(Bucket="lake", Key="copy.csv", CopySource="lake/raw.csv")
    with files.open("plain/by-s3fs.txt", "wb") as out:
        out.write(b"written by s3fs")
    put = client.generate_presigned_url(
        "put_object", Params={"Bucket": "plain", "Key": "signed", "Metadata": {}}
    )
    urllib.request.urlopen(urllib.request.Request(put, data=b"signed", method="PUT"))
    found["signature"] = put.partition("X-Amz-Signature=")[2]


def train() -> None:
    raw = client.get_object(Bucket="lake", Key="raw.csv", Range="bytes=0-3")
    found["range"] = raw["Body"].read().decode()
    found["raw"] = client.get_object(Bucket="lake", Key="raw.csv")["Body"].read().decode()
    whole = io.BytesIO()
    client.download_fileobj("plain", "big", whole, Config=PARTS)
    found["big"] = len(whole.getvalue())
    url = client.generate_presigned_url("get_object", Params={"Bucket": "plain", "Key": "signed"})
    found["signed"] = urllib.request.urlopen(url).read().decode()
    found["signature"] = url.partition("X-Amz-Signature=")[2]
    found["s3fs"] = files.cat("plain/by-s3fs.txt").decode()
    found["listed"] = sorted(files.ls("plain"))
    client.head_object(Bucket="lake", Key="copy.csv")
    client.put_object(Bucket="lake", Key="model.pkl", Body=b"model")
    client.delete_object(Bucket="plain", Key="signed")


def misuse() -> None:
    for ask in (
        lambda: client.get_object(Bucket="lake", Key="missing"),
        lambda: client.head_object(Bucket="lake", Key="missing"),
    ):
        try:
            ask()
        except ClientError as error:
            found.setdefault("refused", []).append(error.response["Error"]["Code"])
    client.delete_objects(Bucket="plain", Delete={"Objects": [{"Key": "by-s3fs.txt"}]})
    for headers in (
        {"Authorization": "Basic YmFzaWMtY2FuYXJ5OmJhc2ljLWNhbmFyeQ=="},
        {"Authorization": "Bearer bearer-canary"},
        {"Authorization": "AWS AKIAOLDKEY:signature-canary"},
        {"X-Amz-Security-Token": "token-canary", "Cookie": "session=cookie-canary"},
    ):
        query = "X-Amz-Signature=query-canary&X-Amz-Security-Token=token-canary&q=own-canary"
        try:
            urllib.request.urlopen(
                urllib.request.Request(f"{ENDPOINT}/lake/raw.csv?{query}", headers=headers)
            )
        except urllib.error.HTTPError as error:
            found.setdefault("statuses", []).append(error.code)


{"ingest": ingest, "train": train, "misuse": misuse}[sys.argv[2]]()
sys.stdout.write(json.dumps(found))
