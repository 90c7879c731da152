"""Pipelines that a server is asked for, each with one point, as their users write them."""

from kfp import dsl, kubernetes


@dsl.component(install_kfp_package=False)
def add(a: int, b: int, told: dsl.Output[dsl.Dataset]) -> int:
    with open(told.path, "w") as file:
        file.write(str(a + b))
    return a + b


@dsl.component(install_kfp_package=False)
def refuse(text: str) -> None:
    raise ValueError(text)


@dsl.component(install_kfp_package=False)
def wait(gate: str) -> None:
    import os
    import time

    open(f"{gate}.begun", "w").close()
    while not os.path.exists(gate):
        time.sleep(0.01)


@dsl.container_component
def elsewhere() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="nowhere.invalid/none:1", command=["true"])


@dsl.pipeline(name="adding")
def adding(a: int = 1, b: int = 2) -> int:
    first = add(a=a, b=b)
    with dsl.ParallelFor([10, 20]) as more:
        add(a=first.outputs["Output"], b=more)
    return first.outputs["Output"]


@dsl.pipeline(name="refusing")
def refusing(text: str = "not today") -> None:
    refuse(text=text)


@dsl.pipeline(name="waiting")
def waiting(gate: str) -> None:
    wait(gate=gate).set_caching_options(False)


@dsl.pipeline(name="far-away")
def far_away() -> None:
    elsewhere()


@dsl.pipeline(name="secretive")
def secretive() -> None:
    task = add(a=1, b=2)
    kubernetes.use_secret_as_env(task, secret_name="keys", secret_key_to_env={"key": "KEY"})
