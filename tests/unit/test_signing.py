"""Signatures by SSH keys, made and checked by the real ssh-keygen."""

import os
import subprocess
from pathlib import Path

import pytest

from clew import signing
from clew.errors import ClewError, Exists, NotFound, Rejected, UsageError

RECORD = signing.message("ab" * 16, "blake3:" + "0" * 64)


def make_key(path: Path, *words: str) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-N", "", "-C", "x", "-f", path, *(words or ("-t", "ed25519"))],
        check=True,
    )
    return path


def test_a_signature_names_its_key(tmp_path: Path) -> None:
    assert signing.sign(tmp_path, RECORD) is None
    key = signing.create_key(tmp_path, "ann@home")
    assert key.stat().st_mode & 0o777 == 0o600
    signature = signing.sign(tmp_path, RECORD)
    assert signature is not None
    found = signing.verify(signature, RECORD)
    assert found == signing.compute_fingerprint(signing.read_public_key(key))
    assert signing.allowed(tmp_path) == {found: "ann@home"}
    with pytest.raises(Exists):
        signing.create_key(tmp_path, "ann@home")


def test_ssh_keygen_itself_verifies_it(tmp_path: Path) -> None:
    signing.create_key(tmp_path, "ann@home")
    (tmp_path / "s.sig").write_text(signing.sign(tmp_path, RECORD) or "")
    words = ["-Y", "verify", "-n", "clew-record", "-I", "ann@home", "-s", tmp_path / "s.sig"]
    ran = subprocess.run(
        ["ssh-keygen", *words, "-f", tmp_path / "allowed_signers"], input=RECORD, check=False
    )
    assert ran.returncode == 0


def test_what_was_not_signed_is_rejected(tmp_path: Path) -> None:
    signing.create_key(tmp_path, "ann@home")
    signature = signing.sign(tmp_path, RECORD) or ""
    other = signing.message("cd" * 16, "blake3:" + "0" * 64)
    lines = signature.splitlines()
    flipped = "\n".join([*lines[:3], lines[3][::-1], *lines[4:]])
    cases = [(signature, other), ("", RECORD), ("x" * 20_000, RECORD), (flipped, RECORD)]
    for text, signed in cases:
        with pytest.raises(Rejected):
            signing.verify(text, signed)
    of_git = tmp_path / "commit"  # a signature for another purpose
    of_git.write_bytes(RECORD)
    words = ["-Y", "sign", "-n", "git", "-f", tmp_path / "id_ed25519", of_git]
    subprocess.run(["ssh-keygen", *words], check=True, stderr=subprocess.DEVNULL)
    with pytest.raises(Rejected):
        signing.verify(of_git.with_suffix(".sig").read_text(), RECORD)


def test_any_ssh_key_signs_also_through_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rsa = make_key(tmp_path / "id_rsa", "-t", "rsa", "-b", "2048")
    signing.use_key(tmp_path / "config", rsa, "ann")
    signature = signing.sign(tmp_path / "config", RECORD) or ""
    assert signing.allowed(tmp_path / "config")[signing.verify(signature, RECORD)] == "ann"

    held = make_key(tmp_path / "id_held")
    socket = tmp_path / "agent"
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", socket], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert agent.stdout is not None
        agent.stdout.readline()
        monkeypatch.setenv("SSH_AUTH_SOCK", os.fspath(socket))
        subprocess.run(["ssh-add", "-q", held], check=True)
        held.unlink()
        signing.use_key(tmp_path / "config", Path(f"{held}.pub"), "ann")
        signature = signing.sign(tmp_path / "config", RECORD) or ""
        public = signing.read_public_key(Path(f"{held}.pub"))
        assert signing.verify(signature, RECORD) == signing.compute_fingerprint(public)
    finally:
        agent.terminate()
        agent.communicate()
    with pytest.raises(ClewError, match="cannot sign"):
        signing.sign(tmp_path / "config", RECORD)


def test_who_is_allowed(tmp_path: Path) -> None:
    key = signing.read_public_key(make_key(tmp_path / "k"))
    other = signing.read_public_key(make_key(tmp_path / "other"))
    for name, text in (("a b", key), ("", key), ("ann", "ssh-ed25519 nothing"), ("ann", "x")):
        with pytest.raises(UsageError):
            signing.allow(tmp_path, name, text)
    (tmp_path / "allowed_signers").write_text(
        f'# mine\n\nann {key} comment\nca cert-authority {other}\ngit namespaces="git" {other}\n'
        f'late valid-before="20200101" {other}\nbad\n'
    )
    assert signing.allowed(tmp_path) == {signing.compute_fingerprint(key): "ann"}
    with pytest.raises(NotFound):
        signing.use_key(tmp_path, tmp_path / "none", "ann")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(UsageError):
        signing.use_key(tmp_path, tmp_path / "text", "ann")


def test_without_ssh_keygen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    with pytest.raises(signing.NoProgram):
        signing.verify("x", RECORD)
