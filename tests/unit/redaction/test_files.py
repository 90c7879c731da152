"""Files that hold credentials."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.redaction import CREDENTIALS, compile_globs, files, find_secret_values
from clew.redaction.files import list_named_credentials

HOME = "/home/me"


@pytest.mark.parametrize(
    "path",
    [
        f"{HOME}/.aws/credentials",
        f"{HOME}/.netrc",
        f"{HOME}/.pgpass",
        f"{HOME}/.ssh/id_ed25519",
        f"{HOME}/.ssh/work_rsa",
        f"{HOME}/.ssh/cluster.pem",
        "/data/.env",
        "/data/.env.production",
        f"{HOME}/.kube/config",
        "/etc/kubernetes/admin.conf",
        f"{HOME}/.docker/config.json",
        f"{HOME}/.config/gcloud/application_default_credentials.json",
        f"{HOME}/.cache/huggingface/token",
        f"{HOME}/.config/google-chrome/Default/Cookies",
        f"{HOME}/.mozilla/firefox/x.default/cookies.sqlite",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
        f"{HOME}/.bash_history",
    ],
)
def test_credential_files_are_known(path: str) -> None:
    assert compile_globs(CREDENTIALS)(path)


@pytest.mark.parametrize(
    "path",
    [
        "/data/env",
        "/data/.env/lib/python3/site.py",
        "/data/.env.example",
        f"{HOME}/.ssh/known_hosts",
        f"{HOME}/.ssh/id_ed25519.pub",
        f"{HOME}/.ssh/config",
        f"{HOME}/.aws/config",
        "/data/credentials",
        "/data/tokenizer.json",
        "/usr/lib/python3/netrc.py",
    ],
)
def test_other_files_are_left_alone(path: str) -> None:
    assert not compile_globs(CREDENTIALS)(path)


def test_files_that_variables_name() -> None:
    environ = {
        "KUBECONFIG": "/a/one:two",
        "DB_PASSWORD_FILE": "/a/[pw]",
        "GOOGLE_APPLICATION_CREDENTIALS": "/a/key.json",
        "PYTHON_HISTORY_FILE": "/a/plain",
        "PGPASSFILE": "",
    }
    named = compile_globs(list_named_credentials(environ, "/cwd"))
    paths = ("/a/one", "/cwd/two", "/a/[pw]", "/a/key.json", "/a/plain", "/cwd")
    assert [named(path) for path in paths] == [True, True, True, True, False, False]


@given(st.text("ab*?[]", max_size=6), st.text("ab*", max_size=6))
def test_globs_match_as_fnmatch_has_it(glob: str, text: str) -> None:
    assert compile_globs((glob,))(text) == fnmatchcase(text, glob)


def test_the_documentation_lists_every_file() -> None:
    page = Path(__file__).parents[3] / "docs/reference/redaction.md"
    listed = set(re.findall(r"`([^`]+)`", page.read_text()))
    assert {*CREDENTIALS, *files.VARIABLES} <= listed


def test_values_in_a_credential_file_are_found() -> None:
    assert set(
        find_secret_values("export API='abc-123'\nHOST=localhost\nDIR=/data/x\nPORT=8080\n")
    ) == {
        "export API='abc-123'\nHOST=localhost\nDIR=/data/x\nPORT=8080",
        "abc-123",
    }
    netrc = "machine example.org\n  login me\n  password correct-horse\n"
    assert "correct-horse" in set(find_secret_values(netrc))
    kubeconfig = f"server: https://10.0.0.1:6443\nclient-key-data: {'QUJD' * 20}\n" + "#" * 5000
    assert set(find_secret_values(kubeconfig)) == {"QUJD" * 20}
    url = "DATABASE=postgres://me:pass-in-it@db/x\n"
    assert "pass-in-it" in " ".join(find_secret_values(url))
    assert "k-0-9-value" in set(find_secret_values('{"api_key": "k-0-9-value",\n"n": 1}'))
