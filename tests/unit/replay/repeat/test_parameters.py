"""Which word of a command a named parameter is."""

import pytest

from clew.errors import UsageError
from clew.replay.repeat.parameters import list_parameters, set_parameter

COMMAND = [
    *("python", "train.py", "--C", "1", "-n", "-3", "--learning-rate=0.1", "seed=7"),
    *("--verbose", "--out", "model", "data"),
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("C", (3, "V")),
        ("--C", (3, "V")),
        ("n", (5, "V")),
        ("-n", (5, "V")),
        ("learning_rate", (6, "--learning-rate=V")),
        ("--learning-rate", (6, "--learning-rate=V")),
        ("seed", (7, "seed=V")),
        ("out", (10, "V")),
    ],
)
def test_a_parameter_is_found_by_name(name: str, expected: tuple[int, str]) -> None:
    assert set_parameter(COMMAND, name, "V") == expected


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        (COMMAND, "epochs", "no parameter epochs"),
        (COMMAND, "--seed", "no parameter --seed"),
        (COMMAND, "verbose", "no value"),
        (COMMAND, "data", "no parameter data"),
        ([*COMMAND, "-C", "2"], "C", "several"),
        ([*COMMAND, "--last"], "last", "no value"),
    ],
)
def test_refusals(command: list[str], name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        set_parameter(command, name, "V")
    assert refused.value.hint


def test_the_parameters_of_a_command() -> None:
    words = "train.py --lr 0.1 -n -3 --fast --depth=2 opt.lr=5 x"
    assert [(p.name, p.value) for p in list_parameters(["python", *words.split()])] == [
        *(("lr", "0.1"), ("n", "-3"), ("fast", None), ("depth", "2"), ("opt.lr", "5")),
    ]
