"""How tasks hand things on: small values as parameters, files as artifacts."""

from kfp import dsl
from kfp.dsl import Artifact, Dataset, Input, Output


@dsl.component
def repeat_line(line: str, times: int, text: Output[Dataset]):
    """A small value comes in, a file goes out."""
    with open(text.path, "w") as file:
        file.writelines(f"{line} {number}\n" for number in range(1, times + 1))


@dsl.component
def split_lines(text: Input[Dataset], odd: Output[Dataset], even: Output[Dataset]):
    """One file comes in, two go out: the first line to `odd`, the second to `even`, and so on."""
    with open(text.path) as source, open(odd.path, "w") as first, open(even.path, "w") as second:
        for number, line in enumerate(source):
            (second if number % 2 else first).write(line)


@dsl.component
def write_numbers(count: int, numbers: Output[Dataset], start: int = 0):
    """What a file holds beside its bytes travels with it, as metadata."""
    with open(numbers.path, "w") as file:
        file.writelines(f"{number}\n" for number in range(start, start + count))
    numbers.metadata["count"] = count


@dsl.component
def sum_numbers(numbers: Input[Dataset]) -> int:
    """A file comes in, a small value goes out."""
    with open(numbers.path) as file:
        total = sum(int(line) for line in file)
    print(f"added {numbers.metadata['count']} numbers")
    return total


@dsl.component
def print_file(file: Input[Artifact]):
    with open(file.path) as lines:
        for line in lines:
            print(line, end="")


@dsl.component
def print_value(value: int):
    print(value)


@dsl.pipeline(name="data-passing")
def data_passing(line: str = "Hello", times: int = 6, count: int = 100_000) -> int:
    """Files and small values from task to task.

    Args:
        line: The text of each line of the file.
        times: The number of lines.
        count: How many numbers to add.
    """
    repeated = repeat_line(line=line, times=times)
    print_file(file=repeated.outputs["text"])

    halves = split_lines(text=repeated.outputs["text"])
    print_file(file=halves.outputs["odd"])
    print_file(file=halves.outputs["even"])

    numbers = write_numbers(count=count)
    total = sum_numbers(numbers=numbers.outputs["numbers"])
    print_value(value=total.output)
    return total.output
