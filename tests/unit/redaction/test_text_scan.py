"""Secrets that are found by their form and surroundings: options, assignments, headers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.redaction import MASK, Redactor, names, text_scan


@pytest.mark.parametrize(
    ("words", "masked", "named"),
    [
        ("x --password hunter22", "x --password ***", "2:PASSWORD"),
        ("x --password=hunter22 y", "x --password=*** y", "1:PASSWORD"),
        ("x --Api_Key=abc --token t -v", "x --Api_Key=*** --token *** -v", "1:API_KEY 3:TOKEN"),
        (
            "x -password a --db-password b",
            "x -password *** --db-password ***",
            "2:PASSWORD 4:DB_PASSWORD",
        ),
        ("x --secret a --secret b", "x --secret *** --secret ***", "2:SECRET 4:SECRET_2"),
        ("x --secret a --secret a", "x --secret *** --secret ***", "2:SECRET 4:SECRET"),
        ("x --token=*** b", "x --token=*** b", ""),
        ("x --password -u root", "x --password -u root", ""),
        ("x --password - y", "x --password - y", ""),
        ("x --password --user=root", "x --password --user=root", ""),
        (
            "x --password-file f --eos-token E --next-token n",
            "x --password-file f --eos-token E --next-token n",
            "",
        ),
        ("/usr/bin/mysql -phunter22 -u root", "/usr/bin/mysql -p*** -u root", "1:PASSWORD"),
        ("ssh -p2222 host", "ssh -p2222 host", ""),
        ("mkdir -p a", "mkdir -p a", ""),
        ("curl -u me:hunter22 u", "curl -u *** u", "2:PASSWORD"),
        ("sort -u a", "sort -u a", ""),
        ("env PGPASSWORD=hunter22 psql", "env PGPASSWORD=*** psql", "1:PGPASSWORD"),
        ("docker run --env=API_KEY=abc i", "docker run --env=API_KEY=*** i", "2:API_KEY"),
        ("train pad_token=0 sort_key=a", "train pad_token=0 sort_key=a", ""),
        ("x https://me:hunter22@h/ hunter22", "x https://***@h/ ***", "1:ARGUMENT_1 2:ARGUMENT_2"),
    ],
)
def test_values_of_options_are_masked(words: str, masked: str, named: str) -> None:
    """`named`: the number of each word that held a secret, and by which name it is asked for."""
    found = Redactor({}).arguments(words.split(" "))
    assert " ".join(found.words) == masked
    assert " ".join(f"{number}:{name}" for number, [name] in found.secrets.items()) == named


@pytest.mark.parametrize(
    ("word", "masked"),
    [
        ("host=db password=hunter22 user=me", "host=db password=*** user=me"),
        ("Server=db;Pwd=hunter22;Uid=me", "Server=db;Pwd=***;Uid=me"),
        ("AccountName=a;AccountKey=abc==;X=1", "AccountName=a;AccountKey=***;X=1"),
        ("postgresql:///d?user=me&password=hunter22", "postgresql:///d?user=me&password=***"),
        ("http://127.0.0.1:8888/lab?token=0a1b2c", "http://127.0.0.1:8888/lab?token=***"),
        ("-Ddb.password=hunter22", "-Ddb.password=***"),
        ("--spring.datasource.password=hunter22", "--spring.datasource.password=***"),
        ("grant_type=x&client_secret=hunter22", "grant_type=x&client_secret=***"),
        ('{"user": "me", "password": "a \\" b"}', '{"user": "me", "password": "***"}'),
        ("{'api_key':'abc', 'eos_token': '</s>'}", "{'api_key':'***', 'eos_token': '</s>'}"),
        ('{"password": "", "token": "$T"}', '{"password": "", "token": "$T"}'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("X-Api-Key: abc def", "X-Api-Key: ***"),
        ("x --verbose --password a b; y", "x --verbose --password *** b; y"),
        ("mysql --password='a b' -e x; curl u", "mysql --password='***' -e x; curl u"),
        ('PASSWORD=a psql; TOKEN="b c" run', 'PASSWORD=*** psql; TOKEN="***" run'),
        ("--password=a b=c", "--password=***"),
        ("ssh://git@host/repo", "ssh://git@host/repo"),
        ("connect(password=os.environ['X'])", "connect(password=os.environ['X'])"),
        ("psql --password $PW; PASSWORD=$(cat f) x", "psql --password $PW; PASSWORD=$(cat f) x"),
        ("p.add_argument('--token', help='a')", "p.add_argument('--token', help='a')"),
        ("headers={'Authorization': 'Bearer ' + t}", "headers={'Authorization': 'Bearer ' + t}"),
    ],
)
def test_secrets_in_a_text_are_masked(word: str, masked: str) -> None:
    script = "-c" if " psql" in word or ";" in word else "x"
    assert Redactor({}).arguments(["sh", script, word]).words[2] == masked


def test_the_value_of_an_option_is_masked_elsewhere_too() -> None:
    redactor = Redactor({"DB_PASSWORD": "battery"})
    assert redactor.arguments(["x", "--password", "hunter22"]).words == ("x", "--password", MASK)
    assert redactor.arguments(["y", "hunter22", "***", "a***hunter22"]) == (
        ("y", MASK, "***", f"a***{MASK}"),
        {"1": ["PASSWORD"], "3": [None, "PASSWORD"]},
    )
    assert redactor.arguments(["x", "--password=battery"]).secrets == {"1": ["DB_PASSWORD"]}
    assert redactor.stream().feed(b"it is hunter22\n") == b"it is ***\n"


@pytest.mark.parametrize(
    "value",
    [
        "host=db password=hunter22",
        "postgresql:///d?password=hunter22",
        "http://127.0.0.1:8888/lab?token=hunter22",
        "--verbose --password hunter22",
        "-Xmx1g -Ddb.password=hunter22",
        "Authorization: Bearer hunter22",
    ],
)
def test_a_variable_with_a_secret_value_is_secret(value: str) -> None:
    redactor = Redactor({"HARMLESS": value})
    assert redactor.environment({"HARMLESS": value}) == {"HARMLESS": MASK}
    assert redactor.text("the hunter22") == f"the {MASK}"


@pytest.mark.parametrize(
    "value", ["ssh://git@host/repo", "() { psql --password $1; }", "unix:path=/run/bus", "a=b"]
)
def test_other_variables_are_left_alone(value: str) -> None:
    assert not Redactor({"HARMLESS": value}).names


def test_the_users_patterns_hold_for_options() -> None:
    words = ["x", "--our-codeword", "sesame", "CODEWORD=sesame"]
    masked = ("x", "--our-codeword", MASK, f"CODEWORD={MASK}")
    assert Redactor({}, ("*CODEWORD",)).arguments(words).words == masked


def test_a_hint_is_in_every_name() -> None:
    for name in (*names.PATTERNS, *names.OPTIONS, *names.HEADERS):
        assert text_scan._is_suspect(name), name


PARTS = (
    *("--password", "=", "hunter22", MASK, " ", "'", '"', "https://", "u:p@h", "?token=", "abc"),
    *("PASSWORD", "$X", "{", "}", ":", "\\", "\n", "Authorization: ", "-p", "ghp_" + "b" * 36),
)


@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=7).map("".join), min_size=1, max_size=4))
def test_what_was_masked_can_be_put_back(words: list[str]) -> None:
    """With a value for each name, where the record says that it stood."""
    redactor = Redactor({"A_TOKEN": "hunter22"})
    found = redactor.arguments(words)
    assert not any("hunter22" in word for word in found.words)
    values = redactor._named
    for number, (word, before) in enumerate(zip(found.words, words, strict=True)):
        names = found.secrets.get(str(number), [None] * word.count(MASK))
        first, *rest = word.split(MASK)
        if len(rest) == len(names):  # else a repeat asks for the whole word
            given = [MASK if name is None else values[name] for name in names]
            assert first + "".join(map("".join, zip(given, rest, strict=True))) == before
