"""Pipelines as users write them, compiled by the stock SDK: `python pipelines.py FOLDER`."""

# What the SDK compiles is written as its own pages write it.
# ruff: noqa: B006, T201, UP006, UP014, UP035, UP045

import sys
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional

from kfp import compiler, dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

HERE = Path(__file__).parent


@dsl.component
def fetch(rows: int, data: Output[Dataset]) -> int:
    with open(data.path, "w") as file:
        file.writelines(f"{n}\n" for n in range(rows))
    data.metadata["rows"] = rows
    return rows


@dsl.component
def train(
    data: Input[Dataset], rate: float, model: Output[Model], scores: Output[Metrics]
) -> float:
    print("rows", data.metadata["rows"])
    with open(data.path) as file:
        weight = rate * sum(int(line) for line in file)
    with open(model.path, "w") as file:
        file.write(str(weight))
    scores.log_metric("weight", weight)
    return weight


@dsl.pipeline(name="training")
def training(rows: int = 10, rate: float = 0.5) -> float:
    data = fetch(rows=rows)
    return train(data=data.outputs["data"], rate=rate).outputs["Output"]


@dsl.component
def kinds(
    i: int,
    f: float,
    s: str,
    b: bool,
    many: List[int],
    d: dict,
    o: Optional[str] = None,
) -> str:
    values = [i, f, s, b, many, d, o]
    return " ".join(type(value).__name__ for value in values) + f" {type(many[0]).__name__}"


@dsl.component
def total(xs: List[int]) -> int:
    return sum(xs)


@dsl.component
def double(x: int) -> int:
    return 2 * x


@dsl.pipeline(name="types")
def types(
    i: int = 1,
    f: float = 2.0,
    s: str = "3",
    b: bool = False,
    many: List[int] = [1, 2],
    d: Dict[str, int] = {"a": 1},
) -> str:
    return kinds(i=i, f=f, s=s, b=b, many=many, d=d).output


@dsl.component
def flip(side: str) -> str:
    return side


@dsl.component
def give(text: str, made: Output[Dataset]) -> str:
    with open(made.path, "w") as file:
        file.write(text)
    return text


@dsl.component
def read(made: Input[Dataset], extra: Optional[str] = None) -> str:
    with open(made.path) as file:
        return file.read() + (extra or "")


@dsl.component
def read_all(made: Input[List[Dataset]]) -> str:
    return ",".join(open(one.path).read() for one in made)


@dsl.component
def two() -> NamedTuple("Two", [("numbers", List[int]), ("name", str)]):  # type: ignore[valid-type]
    return [1, 2, 3], "two"


@dsl.pipeline
def inner(word: str, maybe: Optional[str] = None) -> str:
    made = give(text=word)
    return read(made=made.outputs["made"], extra=maybe).output


@dsl.pipeline(name="branching")
def branching(side: str = "heads") -> str:
    coin = flip(side=side)
    with dsl.If(coin.output == "heads"):
        a = give(text="it is heads")
    with dsl.Elif(coin.output == "it's"):
        b = give(text="a quote")
    with dsl.Else():
        c = give(text="neither")
    one = dsl.OneOf(a.outputs["made"], b.outputs["made"], c.outputs["made"])
    return read(made=one).output


@dsl.pipeline(name="looping")
def looping(
    words: List[str] = ["a", "b"],
) -> NamedTuple("Out", [("total", int), ("all", str), ("nested", str)]):  # type: ignore[valid-type]
    numbers = two()
    with dsl.ParallelFor(numbers.outputs["numbers"], parallelism=2) as number:
        doubled = double(x=number)
    with dsl.ParallelFor(words) as word:
        given = give(text=word)
    with dsl.ParallelFor([{"x": 1}, {"x": 2}]) as pair:
        double(x=pair.x)
        with dsl.ParallelFor([10, 20]) as other:
            double(x=other)
    together = read_all(made=dsl.Collected(given.outputs["made"]))
    nested = inner(word=f"<{numbers.outputs['name']}>")
    summed = total(xs=dsl.Collected(doubled.output))
    out = NamedTuple("Out", [("total", int), ("all", str), ("nested", str)])
    return out(summed.output, together.output, nested.output)  # type: ignore[call-arg]


@dsl.component
def break_down(why: str) -> str:
    raise RuntimeError(why)


@dsl.component
def say(word: str = "nothing") -> str:
    print("said:", word)
    return word


@dsl.component
def bye(status: dsl.PipelineTaskFinalStatus, job: str) -> str:
    return f"{status.state} {status.pipeline_task_name} {job}"


@dsl.component
def succeed_later(folder: str, times: int) -> int:
    import os

    open(os.path.join(folder, f"try{len(os.listdir(folder))}"), "w").close()
    if len(os.listdir(folder)) < times:
        raise RuntimeError("not yet")
    return len(os.listdir(folder))


@dsl.pipeline(name="failing")
def failing(folder: str) -> None:
    last = bye(job=dsl.PIPELINE_JOB_NAME_PLACEHOLDER)
    with dsl.ExitHandler(last):
        broken = break_down(why="as it should")
        after = say(word="never")
        after.after(broken)
        say(word=broken.output).ignore_upstream_failure()
        succeed_later(folder=folder, times=3).set_retry(3, backoff_duration="0s")


@dsl.pipeline(name="importing")
def importing(uri: str) -> str:
    found = dsl.importer(artifact_uri=uri, artifact_class=Dataset, metadata={"who": "me"})
    return read(made=found.output, extra="!").set_env_variable("A", "b").output


@dsl.component(embedded_artifact_path=str(HERE / "pipelines_embedded.txt"))
def embedded(config: dsl.EmbeddedInput[Dataset]) -> str:
    with open(config.path) as file:
        return file.read()


@dsl.pipeline(name="embedding")
def embedding() -> str:
    return embedded().output


@dsl.component
def wait_for_ever(mark: str) -> None:
    import subprocess

    subprocess.run(
        ["sh", "-c", f"trap '' TERM; echo $$ > {mark}.part; mv {mark}.part {mark}; sleep 600"],
        check=False,
    )


@dsl.pipeline(name="endless")
def endless(mark: str) -> None:
    waiting = wait_for_ever(mark=mark)
    say().after(waiting)


@dsl.component
def meet(folder: str, own: str, other: str) -> None:
    import os
    import time

    open(os.path.join(folder, own), "w").close()
    until = time.monotonic() + 120
    while not os.path.exists(os.path.join(folder, other)):
        if time.monotonic() > until:
            raise RuntimeError("alone")
        time.sleep(0.01)


@dsl.pipeline(name="meeting")
def meeting(folder: str) -> None:
    meet(folder=folder, own="a", other="b")
    meet(folder=folder, own="b", other="a")


ALL = (training, types, branching, looping, failing, importing, embedding, endless,
       meeting, bye)  # fmt: skip

if __name__ == "__main__":
    for one in ALL:
        compiler.Compiler().compile(one, str(Path(sys.argv[1]) / f"{one.name}.yaml"))
