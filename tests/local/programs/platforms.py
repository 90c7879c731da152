"""Pipelines that ask their platform for something: `python platforms.py FOLDER` compiles them."""

# What the SDK compiles is written as its own pages write it.
# ruff: noqa: SIM112, SIM115, T201, UP045

import sys
from pathlib import Path
from typing import Optional

from kfp import compiler, dsl, kubernetes


@dsl.component
def take_part(folder: str, name: str) -> None:
    """Say when it began and ended, and let others begin meanwhile."""
    import time

    with open(f"{folder}/{name}", "w") as file:
        file.write(f"{time.monotonic()} ")
        time.sleep(0.3)
        file.write(f"{time.monotonic()}")


@dsl.component
def meet(folder: str, name: str, other: str) -> None:
    import os
    import time

    begun = time.monotonic()
    open(f"{folder}/{name}.there", "w").close()
    while not os.path.exists(f"{folder}/{other}.there"):
        if time.monotonic() > begun + 120:
            raise RuntimeError("alone")
        time.sleep(0.01)
    with open(f"{folder}/{name}", "w") as file:
        file.write(f"{begun} {time.monotonic()}")


@dsl.component
def words() -> str:
    return "500m"


@dsl.pipeline(name="crowding")
def crowding(folder: str, memory: str) -> None:
    asked = words()
    for name in ("a", "b"):
        half = take_part(folder=folder, name=name)
        half.set_memory_request(memory)
        half.set_cpu_request(asked.output)
    for name, other in (("c", "d"), ("d", "c")):
        meet(folder=folder, name=name, other=other).set_cpu_limit("100m")
    take_part(folder=folder, name="cores").set_cpu_request("5000")
    learn = take_part(folder=folder, name="chips")
    learn.set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(64)


@dsl.pipeline(name="asking")
def asking(folder: str, cpu: str) -> None:
    take_part(folder=folder, name="a").set_cpu_limit(cpu)


@dsl.component
def use_secrets(given: dsl.Output[dsl.Artifact], mount: str = "") -> str:
    """Print what it must not tell, in all its forms."""
    import hashlib
    import os
    import subprocess
    import sys

    found = [os.environ["PASSWORD_OF_THE_DATABASE"], os.environ["plain_name"]]
    if mount:
        found += [open(os.path.join(mount, key)).read() for key in sorted(os.listdir(mount))]
    for value in found:
        print("the secret is", value, flush=True)
        sys.stderr.write(f"{value}\n")
        subprocess.run(["echo", value], check=True)
    with open(given.path, "w") as file:
        file.write(os.environ.get("MODE", ""))
    return hashlib.sha256("".join(found).encode()).hexdigest()


@dsl.component
def show_variables(names: list) -> dict:
    import os

    return {name: os.environ.get(name) for name in names}


@dsl.component
def name_of(word: str) -> str:
    return word


@dsl.pipeline(name="keeping-secrets")
def keeping_secrets(secret: str = "database") -> str:
    task = use_secrets()
    kubernetes.use_secret_as_env(task, secret, {"password": "PASSWORD_OF_THE_DATABASE"})
    kubernetes.use_secret_as_env(task, "database", {"token": "plain_name"})
    kubernetes.use_config_map_as_env(task, "settings", {"mode": "MODE"})
    kubernetes.add_pod_label(task, "team", "blue")
    kubernetes.add_pod_annotation(task, "why", "because")
    kubernetes.add_toleration(task, key="gpu", operator="Exists")
    kubernetes.add_node_selector(task, "disk", "ssd")
    kubernetes.set_image_pull_policy(task, "Always")
    kubernetes.set_image_pull_secrets(task, ["registry"])
    kubernetes.set_security_context(task, run_as_user=12345)
    kubernetes.use_field_path_as_env(task, "TEAM", "metadata.labels['team']")
    return task.outputs["Output"]


@dsl.component
def measure() -> str:
    import os

    return f"{len(os.environ['PASSWORD_OF_THE_DATABASE'])} {os.environ['MODE']}"


@dsl.pipeline(name="measuring-secrets")
def measuring_secrets() -> str:
    task = measure()
    kubernetes.use_secret_as_env(task, "database", {"password": "PASSWORD_OF_THE_DATABASE"})
    kubernetes.use_config_map_as_env(task, "settings", {"mode": "MODE"})
    return task.output


@dsl.pipeline(name="naming")
def naming(which: str) -> None:
    """What is named when another task has ended."""
    found = name_of(word=which)
    task = show_variables(names=["MODE", "GONE", "POD", "TEAM", "SPACE"])
    kubernetes.use_config_map_as_env(task, found.output, {"mode": "MODE"})
    kubernetes.use_secret_as_env(task, "nowhere", {"key": "GONE"}, optional=True)
    kubernetes.add_pod_label(task, "team", "blue")
    kubernetes.use_field_path_as_env(task, "TEAM", "metadata.labels['team']")
    kubernetes.use_field_path_as_env(task, "POD", "metadata.name")
    kubernetes.use_field_path_as_env(task, "SPACE", "metadata.namespace")


MOUNTS = Path(sys.argv[1] if __name__ == "__main__" else ".", "mounts").resolve()
"""Paths of volumes are part of what is compiled."""


@dsl.pipeline(name="mounting-secrets")
def mounting_secrets() -> str:
    task = use_secrets(mount=str(MOUNTS / "secret"))
    kubernetes.use_secret_as_env(
        task, "database", {"password": "PASSWORD_OF_THE_DATABASE", "token": "plain_name"}
    )
    kubernetes.use_secret_as_volume(task, "certificate", str(MOUNTS / "secret"))
    return task.outputs["Output"]


@dsl.component
def write_down(path: str, word: str) -> str:
    import os
    import time

    before = sorted(os.listdir(path))
    with open(os.path.join(path, word), "w") as file:
        file.write(word)
    time.sleep(0.1)
    return " ".join([*before, "then", *sorted(os.listdir(path))])


@dsl.pipeline(name="sharing-volumes")
def sharing_volumes() -> None:
    made = kubernetes.CreatePVC(
        access_modes=["ReadWriteOnce"], size="1Gi", pvc_name_suffix="-shared"
    )
    first = write_down(path=str(MOUNTS / "claim"), word="first")
    kubernetes.mount_pvc(first, made.outputs["name"], str(MOUNTS / "claim"))
    second = write_down(path=str(MOUNTS / "deep" / "claim"), word="second").after(first)
    kubernetes.mount_pvc(second, made.outputs["name"], str(MOUNTS / "deep" / "claim"))
    kubernetes.DeletePVC(pvc_name=made.outputs["name"]).after(second)


@dsl.pipeline(name="own-volumes")
def own_volumes() -> None:
    for word in ("one", "two", "three"):
        task = write_down(path=str(MOUNTS / "empty"), word=word)
        kubernetes.empty_dir_mount(task, "scratch", str(MOUNTS / "empty"))
    for word in ("four", "five"):
        task = write_down(path=str(MOUNTS / "own"), word=word)
        kubernetes.mount_pvc(task, "data", str(MOUNTS / "own"), sub_path="below")
    task = write_down(path=str(MOUNTS / "gone"), word="six")
    kubernetes.add_ephemeral_volume(
        task, "gone", str(MOUNTS / "gone"), access_modes=["ReadWriteOnce"], size="1Gi"
    )
    configured = show_variables(names=[])
    kubernetes.use_config_map_as_volume(configured, "settings", str(MOUNTS / "settings"))


@dsl.pipeline(name="nowhere-to-mount")
def nowhere_to_mount() -> None:
    task = write_down(path="/etc/passwd/data", word="x")
    kubernetes.empty_dir_mount(task, "scratch", "/etc/passwd/data")


@dsl.component
def take_long() -> None:
    import signal
    import time

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


@dsl.pipeline(name="late")
def late() -> None:
    kubernetes.set_timeout(take_long(), 1)
    kubernetes.set_timeout(name_of(word="in time"), 600)


@dsl.component
def note(folder: str, word: str) -> str:
    with open(f"{folder}/notes", "a+") as file:
        file.write(word)
        file.seek(0)
        return file.read()


@dsl.component
def change(data: dsl.Input[dsl.Dataset]) -> str:
    with open(data.path, "a+") as file:
        file.write(" changed")
        file.seek(0)
        return f"{file.read()} in {data.path}"


@dsl.pipeline(
    name="working-together",
    pipeline_config=dsl.PipelineConfig(workspace=dsl.WorkspaceConfig(size="1Gi")),
)
def working_together(uri: str) -> str:
    first = note(folder=dsl.WORKSPACE_PATH_PLACEHOLDER, word="one ")
    data = dsl.importer(artifact_uri=uri, artifact_class=dsl.Dataset, download_to_workspace=True)
    change(data=data.output)
    return note(folder=dsl.WORKSPACE_PATH_PLACEHOLDER, word="two").after(first).output


@dsl.pipeline(name="too-late", pipeline_config=dsl.PipelineConfig(active_deadline_seconds=2))
def too_late() -> None:
    take_long()


@dsl.component
def succeed_later(folder: str) -> int:
    import os

    tries = len(os.listdir(folder)) + 1
    open(os.path.join(folder, f"try{tries}"), "w").close()
    if tries < 3:
        raise RuntimeError("not yet")
    return tries


@dsl.pipeline
def attempt_all(folder: str) -> int:
    return succeed_later(folder=folder).output


@dsl.pipeline(name="trying-again")
def trying_again(folder: str) -> int:
    whole = attempt_all(folder=folder)
    return whole.set_retry(num_retries=3, backoff_duration="1s", backoff_factor=1).output


@dsl.component
def fail_first(mark: str) -> str:
    import os

    if not os.path.exists(mark):
        open(mark, "w").close()
        raise RuntimeError("the first time")
    return os.environ["MODE"] + str(len(os.environ["PASSWORD_OF_THE_DATABASE"]))


@dsl.pipeline(name="going-on")
def going_on(mark: str) -> str:
    task = fail_first(mark=mark).after(name_of(word="before"))
    kubernetes.use_secret_as_env(task, "database", {"password": "PASSWORD_OF_THE_DATABASE"})
    kubernetes.use_config_map_as_env(task, "settings", {"mode": "MODE"})
    return task.output


@dsl.component
def wait_for_ever(mark: str) -> None:
    import time

    open(mark, "w").close()
    time.sleep(600)


@dsl.pipeline(name="dying")
def dying(mark: str) -> None:
    task = wait_for_ever(mark=mark)
    kubernetes.use_secret_as_volume(task, "certificate", str(MOUNTS / "dying"))


@dsl.component
def each(word: str) -> str:
    import os

    return word + os.environ.get("MODE", "-") + os.environ.get("GONE", "-")


@dsl.pipeline(name="optional-names")
def optional_names(gone: Optional[str] = None, there: str = "settings") -> None:
    given = name_of(word=there)
    with dsl.ParallelFor(["a", "b"]) as word:
        task = each(word=word)
        kubernetes.use_config_map_as_env(task, given.output, {"mode": "MODE"})
        kubernetes.use_secret_as_env(task, gone, {"key": "GONE"}, optional=True)
        kubernetes.use_secret_as_volume(task, gone, "/etc/passwd/none", optional=True)


ALL = (
    optional_names,
    going_on,
    dying,
    trying_again,
    working_together,
    too_late,
    crowding,
    asking,
    keeping_secrets,
    measuring_secrets,
    naming,
    mounting_secrets,
    sharing_volumes,
    own_volumes,
    nowhere_to_mount,
    late,
)


if __name__ == "__main__":
    for one in ALL:
        compiler.Compiler().compile(one, str(Path(sys.argv[1]) / f"{one.name}.yaml"))
