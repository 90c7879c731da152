import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.redaction import MASK, Redactor, mask_text, mask_url, names


@pytest.mark.parametrize(
    "name",
    [
        "GITHUB_TOKEN",
        "HF_TOKEN",
        "token",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "SECRET_KEY",
        "db_password",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SMTP_PASS",
        "WANDB_API_KEY",
        "OPENAI_APIKEY",
        "SSH_PRIVATE_KEY",
        "AZURE_CREDENTIALS",
        "REDISCLI_AUTH",
        "TOKEN_V2",
        "SENTRY_DSN",
        "KAGGLE_KEY",
    ],
)
def test_names_that_say_secret_are_redacted(name: str) -> None:
    redactor = Redactor({name: "correct horse"})
    assert redactor.names == {name}
    assert redactor.environment({name: "correct horse", "X": "1"}) == {name: MASK, "X": "1"}


def test_the_settings_of_clew_are_not_recorded() -> None:
    variables = {
        "CLEW_PROJECT": "/p",
        "CLEW_GRAPH": "host=db password=battery",
        "CLEW_SERVER": "http://there:8100",
        "CLEW_TOKEN": "correct horse",
        "X": "1",
    }
    redactor = Redactor(variables)
    assert redactor.environment(variables) == {"X": "1"}
    assert redactor.text("it is correct horse") == f"it is {MASK}"


@pytest.mark.parametrize(
    "name",
    [
        "TOKENIZERS_PARALLELISM",
        "MAX_TOKENS",
        "GIT_AUTHOR_NAME",
        "PWD",
        "OLDPWD",
        "KEYBOARD",
        "PATH",
        "COMPASS",
        "SSH_AUTH_SOCK",
        "SSH_ASKPASS",
        "XAUTHORITY",
        "POSTGRES_PASSWORD_FILE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "SORT_KEY",
    ],
)
def test_other_names_are_left_alone(name: str) -> None:
    assert not Redactor({name: "correct horse"}).names


def test_an_empty_variable_hides_nothing() -> None:
    assert not Redactor({"API_TOKEN": ""}).names


def test_the_users_patterns_are_added_and_are_stronger_than_the_exceptions() -> None:
    environ = {"OUR_CODEWORD": "swordfish", "MY_SECRET_FILE": "/run/x", "OTHER": "y"}
    assert Redactor(environ, ("*codeword", "MY_*_FILE")).names == {"OUR_CODEWORD", "MY_SECRET_FILE"}


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://me:hunter22@db/x",
        "ghp_" + "a1" * 18,
        "hf_" + "Ab" * 17,
        "AKIA" + "ABCDEFGH12345678",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n",
    ],
)
def test_values_that_are_secret_whatever_their_name(value: str) -> None:
    assert Redactor({"HARMLESS": value}).names == {"HARMLESS"}


@pytest.mark.parametrize("value", ["https://host/a:b@c", "http://host:8080/", "me@host", "a:b@c"])
def test_addresses_without_a_password_are_no_secret(value: str) -> None:
    assert not Redactor({"HARMLESS": value}).names


def test_a_value_is_masked_anywhere() -> None:
    redactor = Redactor({"A_TOKEN": "s3cr3t/x", "DB": "mysql://u:p%40ssword@h/d", "N_TOKEN": "1"})
    assert redactor.text("--with=s3cr3t/x!") == f"--with={MASK}!"
    assert redactor.text("q=s3cr3t%2Fx") == f"q={MASK}"
    assert redactor.text("p@ssword 1") == f"{MASK} 1"
    assert redactor.text(b"\xff s3cr3t/x \xfe") == b"\xff " + MASK.encode() + b" \xfe"
    assert redactor.text("\udcff s3cr3t/x") == f"\udcff {MASK}"
    assert redactor.environment({"OTHER": "uses s3cr3t/x"}) == {"OTHER": f"uses {MASK}"}


def test_a_key_of_several_lines_is_masked_as_a_terminal_shows_it() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nabcdef\n-----END PRIVATE KEY-----"
    assert Redactor({"K": key}).text(key.replace("\n", "\r\n")) == MASK


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("https://me:pw@host/a?x=1", f"https://{MASK}@host/a?x=1"),
        ("https://tok@host:1/a", f"https://{MASK}@host:1/a"),
        ("https://me:p@w@host/", f"https://{MASK}@host/"),
        ("https://host/a@b", "https://host/a@b"),
        (
            "https://h/a?X-Amz-Signature=ab&X-Amz-Date=3&y=2",
            f"https://h/a?X-Amz-Signature={MASK}&X-Amz-Date=3&y=2",
        ),
        ("https://h/?access_token=ab#token=cd", f"https://h/?access_token={MASK}#token={MASK}"),
        ("https://h/?api%5Fkey=ab", f"https://h/?api%5Fkey={MASK}"),
        ("https://h/?token=&keyboard=qwertz", "https://h/?token=&keyboard=qwertz"),
        ("s3://bucket/key", "s3://bucket/key"),
    ],
)
def test_credentials_in_urls_are_removed(url: str, masked: str) -> None:
    assert mask_url(url) == masked
    assert mask_url(masked) == masked


def test_a_url_inside_an_argument_loses_its_secrets() -> None:
    script = "curl -o a 'https://u:p@host/a?token=abc&n=1' && echo done=yes"
    masked = "curl -o a 'https://***@host/a?token=***&n=1' && echo done=yes"
    assert mask_text(script) == masked
    assert Redactor({}).arguments(["sh", "-c", script]).words == ("sh", "-c", masked)


def test_a_secret_in_a_urls_path_is_masked_too() -> None:
    redactor = Redactor({"BOT_TOKEN": "12345:abcdef"})
    assert redactor.url("https://u@h/bot12345:abcdef/x") == f"https://{MASK}@h/bot{MASK}/x"


@given(
    values=st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=4),
    pieces=st.lists(st.text("ab ", max_size=12), max_size=8),
)
@example(values=["aabbaa", "aabbaabb"], pieces=["aab", "baa", "b"])
@example(values=["bbaabb", "bbabab"], pieces=["bbaab", "bab", "ab"])
def test_a_stream_is_masked_across_chunks(values: list[str], pieces: list[str]) -> None:
    redactor = Redactor({f"A{n}_TOKEN": value for n, value in enumerate(values)})
    stream = redactor.stream()
    masked = b"".join(stream.feed(piece.encode()) for piece in pieces) + stream.finish()
    assert masked == redactor.text("".join(pieces).encode())
    assert not any(value.encode() in masked for value in values)


SECRET = 'pä$$ "w0rd"/\nline+two=~'
RAW = SECRET.encode()


@pytest.mark.parametrize("around", ["", "x", "xy", "xyz"])
@pytest.mark.parametrize(
    "encode",
    [
        bytes,
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw.hex().encode(),
        lambda raw: raw.hex().upper().encode(),
        lambda raw: quote(raw, safe="").encode(),
        lambda raw: quote(raw).lower().encode(),
        lambda raw: urlencode({"q": raw}).encode(),
        lambda raw: json.dumps({"k": raw.decode()}).encode(),
        lambda raw: json.dumps({"k": raw.decode()}, ensure_ascii=False).encode(),
    ],
)
def test_an_encoded_value_is_masked(encode: Callable[[bytes], bytes], around: str) -> None:
    redactor = Redactor({})
    redactor.add_secrets({"ANY": SECRET})
    text = around.encode() + encode(RAW) + around.encode()
    masked = redactor.text(text)
    assert MASK.encode() in masked
    assert encode(RAW)[-8:-2] not in masked
    stream = redactor.stream()
    assert (
        b"".join(stream.feed(text[n : n + 1]) for n in range(len(text))) + stream.finish() == masked
    )


@given(st.binary(max_size=9), st.binary(min_size=9, max_size=40), st.binary(max_size=9))
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
def test_a_value_inside_base64_is_masked(
    encode: Callable[[bytes], bytes], before: bytes, value: bytes, after: bytes
) -> None:
    """All but the characters at its ends, which hold bits of what stands beside it."""
    redactor = Redactor({})
    redactor.add_secrets({"ANY": value.decode(errors="surrogateescape")})
    masked = redactor.text(encode(before + value + after))
    assert MASK.encode() in masked
    assert len(masked) <= -(-len(before) * 4 // 3) + -(-len(after) * 4 // 3) + 3 + 6


def test_a_stream_without_secrets_passes_as_it_is() -> None:
    piece = b"x" * 10
    stream = Redactor({"PATH": "/bin"}).stream()
    assert stream.feed(piece) is piece
    assert stream.finish() == b""


def test_a_stream_holds_back_no_more_than_it_must() -> None:
    stream = Redactor({"A_TOKEN": "abcdef"}).stream()
    assert stream.feed(b"ab xyz") == b"ab xyz"
    assert stream.feed(b" abc") == b" "
    assert stream.feed(b"x") == b"abcx"


def test_the_documentation_lists_every_pattern() -> None:
    page = Path(__file__).parents[3] / "docs/reference/redaction.md"
    listed = set(re.findall(r"`([^`\s]+)`", page.read_text()))
    assert {*names.PATTERNS, *names.EXCEPTIONS, *names.QUERY, *names.HEADERS} <= listed
    assert {f"--{option}" for option in names.OPTIONS} <= listed


def test_seals_tell_secrets_apart() -> None:
    def seals(value: str, key: bytes) -> dict[str, str]:
        variables = {"A_TOKEN": value, "PLAIN": "x"}
        return Redactor(variables, key=key).seals(variables)

    first = seals("correct horse", b"key")
    assert first.keys() == {"A_TOKEN"}
    assert first == seals("correct horse", b"key")
    assert first != seals("battery staple", b"key")
    assert first != seals("correct horse", b"another project's")
    assert seals("correct horse", b"") == {}


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_secret_is_found_across_pieces(size: int) -> None:
    redactor = Redactor({"A_TOKEN": "correct horse"})
    data = b"before correct horse after"
    assert redactor.finds_secret(data[at : at + size] for at in range(0, len(data), size))
    other = data.replace(b"horse", b"house")
    assert not redactor.finds_secret(other[at : at + size] for at in range(0, len(other), size))
