"""A pipeline whose tasks talk for as long as the test lets them."""

# What the SDK compiles is written as its own pages write it.
# ruff: noqa: T201

from kfp import dsl


@dsl.component
def talk(folder: str, tries: int) -> None:
    import os
    import time

    attempt = 1 + len(os.listdir(folder))
    print("attempt", attempt, "knows", os.environ.get("TALK_TOKEN", "nothing"))
    open(os.path.join(folder, f"begun-{attempt}"), "w").close()
    until = time.monotonic() + 120
    while not os.path.exists(f"{folder}.go-{attempt}") and time.monotonic() < until:
        time.sleep(0.01)
    if attempt < tries:
        raise RuntimeError("not yet")
    for number in range(60_000):
        print("line", number)


@dsl.component
def brief(word: str) -> None:
    print("word", word)


@dsl.container_component
def shell(folder: str):  # type: ignore[no-untyped-def]
    said = 'echo started; until [ -e "$0.go-1" ]; do sleep 0.01; done; echo done'
    return dsl.ContainerSpec(image="none", command=["sh", "-c", said], args=[folder])


@dsl.pipeline(name="talking")
def talking(folder: str, kind: str, tries: int = 1) -> None:
    with dsl.If(kind == "python"):
        talk(folder=folder, tries=tries).set_retry(3, backoff_duration="0s")
    with dsl.If(kind == "shell"):
        shell(folder=folder)
    with dsl.If(kind == "brief"), dsl.ParallelFor(["a", "b", "c", "d", "e", "f"]) as word:
        brief(word=word)
