"""Which files without bytes a repeat may be given, and how they get into its sandbox."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.replay.record_builder import RecordBuilder

from clew.errors import Damaged, NoContent, SecretsNeeded
from clew.prov.queries.execution_record import Look
from clew.replay.repeat.credential_files import CredentialFile, write_credential_files
from clew.replay.repeat.repeat_plan import RepeatPlan, make_plan
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import Entry

GLOBS = ("*/.env", "*/.aws/credentials")


def reading(*paths: str, variables: dict[str, str] | None = None) -> RecordBuilder:
    run = RecordBuilder("app", "--mode", "fast-9", variables=variables)
    process = run.process("app")
    for path in paths:
        key = run.reads(process, path, b"T=recorded-1\n")
        run.versions[key] = run.versions[key]._replace(stored=False, mtime=7)
    return run


def planned(
    run: RecordBuilder, *, elsewhere: bool = False, from_this_machine: bool = False, **given: str
) -> RepeatPlan:
    record = run.record()
    record = replace(record, execution=record.execution._replace(made_elsewhere=elsewhere))
    files = {f"/w/{name.replace('_', '.')}": value for name, value in given.items()}
    values = SecretValues(given=files, credentials=GLOBS, own_files=from_this_machine)
    return make_plan(record, read_listing=lambda _: [], values=values, network=False)


def test_a_given_file_is_a_stub_in_the_initial_files() -> None:
    found = planned(reading("/w/.env"), _env="T=renewed-22\nMODE=fast-9\n")
    assert found.initial_files.entries[b"/w/.env"] == Entry("stub", 0o644, 7, 25)
    assert found.initial_files.missing == []
    file = found.credentials[b"/w/.env"]
    assert (file.data, file.mode, file.mtime) == (b"T=renewed-22\nMODE=fast-9\n", 0o644, 7)
    assert "renewed-22" in file.secrets
    assert "fast-9" not in file.secrets  # the recorded command shows it
    assert any("differs from the recorded one" in warning for warning in found.warnings)
    assert "renewed" not in repr(found)
    assert found.with_files({b"/w/.env": None}).credentials == {}


def test_as_recorded_nothing_is_said() -> None:
    assert planned(reading("/w/.env"), _env="T=recorded-1\n").warnings == ()


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_missing_credential_file_is_requested(elsewhere: bool) -> None:
    with pytest.raises(SecretsNeeded) as refused:
        planned(reading("/w/my app/.env"), elsewhere=elsewhere)
    assert refused.value.names == ("/w/my app/.env",)
    assert "--secret '/w/my app/.env'=FILE" in refused.value.hint


def test_only_a_record_made_here_gets_a_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\r\n")
    run = reading(f"{tmp_path}/.env")
    [file] = planned(run, from_this_machine=True).credentials.values()
    assert (file.data, file.from_this_machine) == (b"\xff\r\n", True)
    with pytest.raises(SecretsNeeded):
        planned(run, from_this_machine=True, elsewhere=True)
    with pytest.raises(SecretsNeeded):  # as on a server
        planned(run)


def test_other_files_without_bytes_cannot_be_given() -> None:
    with pytest.raises(NoContent, match="/w/data") as refused:
        planned(reading("/w/.env", "/w/data"), _env="x", data="y")
    assert "/w/.env" not in refused.value.message


def test_a_credential_file_is_known_by_a_link_and_by_a_variable() -> None:
    run = reading("/srv/aws/credentials", "/w/cluster", variables={"KUBECONFIG": "/w/cluster"})
    for link, target in (("/w/.aws", "/srv/aws"), ("/srv/aws/self", "/srv/aws")):
        run.looked.append(Look(run.top, f"file://machine{link}", "link", run.now(), target))
    with pytest.raises(SecretsNeeded) as refused:
        planned(run)
    assert refused.value.names == ("/srv/aws/credentials", "/w/cluster")


def test_a_file_without_a_place_is_left_out() -> None:
    """A record that contradicts itself: it has a link above one file, and a file below another."""
    run = reading("/w/a/.env", "/w/.env", "/w/.env/.env")
    run.looked.append(Look(run.top, "file://machine/w/a", "link", run.now(), "elsewhere"))
    found = planned(run, **{"a/_env": "x", "_env": "y", "_env/_env": "z"})
    assert found.credentials.keys() == {b"/w/.env/.env"}
    assert found.with_files({b"/w/.env": Entry("file", digest="d")}).credentials == {}


def given(data: bytes) -> CredentialFile:
    return CredentialFile(
        data, mode=0o640, mtime=5, recorded=None, from_this_machine=False, secrets=()
    )


def test_directories_around_a_file_are_as_in_the_lower_layer(tmp_path: Path) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "lower"
    upper.mkdir()
    (lower / "a/b").mkdir(parents=True)
    (lower / "a").chmod(0o711)
    write_credential_files({b"/a/b/.env": given(b"x")}, upper, lower)
    made = upper / "a/b/.env"
    assert (made.read_bytes(), made.stat().st_mode, made.stat().st_mtime_ns) == (b"x", 0o100640, 5)
    for name in ("a", "a/b"):
        one, other = (upper / name).stat(), (lower / name).stat()
        assert (one.st_mode, one.st_mtime_ns) == (other.st_mode, other.st_mtime_ns)
    for path in (b"/../x", b"/a/../../x"):
        with pytest.raises(Damaged):
            write_credential_files({path: given(b"x")}, upper, lower)
