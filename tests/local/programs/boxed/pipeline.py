"""Published components, of the first and the second kind, in one pipeline."""

from pathlib import Path

from kfp import components, dsl

HERE = Path(__file__).parent
filter_text = components.load_component_from_file(str(HERE / "filter_text.yaml"))
join_lines = components.load_component_from_file(str(HERE / "join_lines.yaml"))


@dsl.component
def write(text: dsl.Output[dsl.Dataset]) -> None:
    with open(text.path, "w") as file:
        file.write("one\nTwo\nthree\nthree and a half\n")


@dsl.component
def tell(joined: dsl.Input[dsl.Dataset], count: int, longest: bool) -> str:
    with open(joined.path) as file:
        return f"{file.read()} {count} {longest}"


@dsl.pipeline(name="boxed")
def boxed(pattern: str = "t") -> str:
    text = write().outputs["text"]
    all_of_it = filter_text(text=text, pattern=pattern, ignore_case=True)
    filter_text(text=text, pattern=pattern, limit=1).set_env_variable("LC_ALL", "C")
    joined = join_lines(text=all_of_it.outputs["filtered_text"], mark=";", prefix="a b")
    join_lines(text=all_of_it.outputs["filtered_text"])
    return tell(
        joined=joined.outputs["joined"],
        count=all_of_it.outputs["count"],
        longest=joined.outputs["longest"],
    ).output
