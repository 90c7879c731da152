"""The workload of `examples/cluster`, in namespaces of tests."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.cluster.kube import Kube, pod

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "cluster"
IMAGE = "docker.io/clew/pumps:1"
STEPS = ("ingest", "prepare-north", "prepare-south", "train", "evaluate")
"""The Pods, in the order in which they run."""
MAKE_BUCKETS = """
import boto3, os
client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
for name in {names}:
    client.create_bucket(Bucket=name)
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={{"Status": "Enabled"}})
"""


def prepare_namespace(kube: Kube, s3: Mapping[str, str], bucket: str) -> None:
    """Everything but the Pods and the bucket: the volume, the settings, the address of the bucket
    and its keys. `s3`: the variables of a client."""
    address = {"BUCKET": bucket, "AWS_ENDPOINT_URL": s3["AWS_ENDPOINT_URL"]}
    keys = {"id": s3["AWS_ACCESS_KEY_ID"], "key": s3["AWS_SECRET_ACCESS_KEY"]}
    kube("create", "secret", "generic", "bucket", *_literals(keys))
    kube("create", "configmap", "bucket", *_literals(address))
    kube("apply", "--filename", str(EXAMPLE / "volume.yaml"))


def make_buckets(kube: Kube, s3: Mapping[str, str], names: Iterable[str]) -> None:
    """Buckets that keep versions. `s3`: the variables of a client."""
    variables = [{"name": name, "value": value} for name, value in s3.items()]
    script = MAKE_BUCKETS.format(names=list(names))
    kube.run(pod("buckets", "python3", "-c", script, image=IMAGE, env=variables))


def run_steps(kubes: Iterable[Kube], steps: Iterable[str] = STEPS) -> None:
    """Each Pod after the one before, in all namespaces at once."""
    kubes = list(kubes)
    for step in steps:
        for kube in kubes:
            kube("apply", "--filename", str(EXAMPLE / f"{step}.yaml"))
        for kube in kubes:
            kube.wait_for(f"pod/{step}", "jsonpath={.status.phase}=Succeeded")


def _literals(values: dict[str, str]) -> list[str]:
    return [f"--from-literal={name}={value}" for name, value in values.items()]
