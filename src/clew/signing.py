"""Signatures of records: SSH signatures (SSHSIG), made and checked by `ssh-keygen`, as Git does.

A signature covers an execution's uid and the digest of its events, and through them every digest of
content. The user's configuration directory names the signing key (`signing-key`, a path) and the
keys of known signers (`allowed_signers`, in the format of `ssh-keygen`). A valid signature by any
other key proves only that the record is the one that was signed.
"""

import base64
import binascii
import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

from clew.documents.ids import Uid
from clew.errors import ClewError, Exists, NotFound, Rejected, UsageError

NAMESPACE = "clew-record"
LONGEST = 16_384
"""Bytes of a signature at most; one of a 4096-bit RSA key has about 1,500."""

_PROGRAM = "ssh-keygen"
_NAME = re.compile(r"[^\s,\"!*?]{1,200}")
_GOOD = re.compile(rf'Good "{NAMESPACE}" signature with \S+ key (SHA256:[A-Za-z0-9+/]+)')


class NoProgram(ClewError):
    """`ssh-keygen` is not installed."""

    code = "no-ssh-keygen"


def message(uid: Uid, events: str) -> bytes:
    """The signed message: docs/formats/remote.md."""
    return f"clew-record 1\nexecution {uid}\nevents {events}\n".encode()


def verify(signature: str, signed: bytes) -> str:
    """The fingerprint of the key that made this signature; Rejected if it is not valid."""
    if len(signature) > LONGEST:
        raise Rejected("its signature is too long to be one", hint="nothing of it was imported")
    with tempfile.NamedTemporaryFile("w", suffix=".sig") as file:
        file.write(signature)
        file.flush()
        words = ("-Y", "check-novalidate", "-n", NAMESPACE, "-s", file.name)
        ran = _run(*words, stdin=signed)
    found = _GOOD.match(ran.stdout.decode(errors="replace"))
    if ran.returncode != 0 or found is None:
        raise Rejected("its signature is not valid", hint="nothing of it was imported")
    return found[1]


def sign(directory: Path, signed: bytes) -> str | None:
    """A signature by the user's key; None if no key was chosen."""
    key = find_signing_key(directory)
    if key is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "record")
        file.write_bytes(signed)
        ran = _run("-Y", "sign", "-f", os.fspath(key), "-n", NAMESPACE, os.fspath(file))
        if ran.returncode != 0:
            why = ran.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no reason"]
            raise ClewError(
                f"{key} cannot sign: {why[0]}", hint="clew key use FILE, or push with --no-sign"
            )
        return file.with_suffix(".sig").read_text()


def find_signing_key(directory: Path) -> Path | None:
    """The key file that `push` signs with: private, or public if an agent holds the private one."""
    try:
        return Path((directory / "signing-key").read_text().strip())
    except FileNotFoundError:
        return None


def create_key(directory: Path, owner: str) -> Path:
    """Create an ed25519 key, and sign with it from now on."""
    key = directory / "id_ed25519"
    if key.exists():
        raise Exists(f"{key} already exists", hint="clew key show")
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    ran = _run("-q", "-t", "ed25519", "-N", "", "-C", owner, "-f", os.fspath(key))
    if ran.returncode != 0:
        raise ClewError(f"ssh-keygen created no key: {ran.stderr.decode(errors='replace').strip()}")
    use_key(directory, key, owner)
    return key


def use_key(directory: Path, key: Path, owner: str) -> None:
    """Sign with an SSH key from now on; signatures of it are known as the owner's."""
    if not key.is_file():
        raise NotFound(f"no key file {key}", hint="ssh-keygen -t ed25519, or clew key create")
    public = read_public_key(key)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    if compute_fingerprint(public) not in allowed(directory):
        allow(directory, owner, public)
    (directory / "signing-key").write_text(f"{key.absolute()}\n")


def read_public_key(key: Path) -> str:
    """The public half of a key file, as one line."""
    beside = key if key.suffix == ".pub" else Path(f"{key}.pub")
    if beside.is_file():
        text = beside.read_text(errors="replace")
    else:
        text = _run("-y", "-P", "", "-f", os.fspath(key)).stdout.decode(errors="replace")
    words = text.split()
    if len(words) < 2 or _blob(words[1]) is None:
        raise UsageError(f"{key} is not a readable SSH key", hint=f"is {beside} there?")
    return " ".join(words[:2])


def compute_fingerprint(public: str) -> str:
    """The fingerprint of a public key line, as ssh-keygen prints it."""
    blob = _blob(public.split()[1])
    assert blob is not None
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def allow(directory: Path, name: str, public: str) -> str:
    """Add the key of `name` to the known signers; returns its fingerprint."""
    words = public.split()
    if not _NAME.fullmatch(name) or name.startswith("#"):
        raise UsageError(f"{name!r} cannot name a signer", hint="such as ann@example.org")
    if len(words) < 2 or _blob(words[1]) is None:
        raise UsageError("this is not a public SSH key", hint="ssh-ed25519 AAAA…, or its file")
    found = compute_fingerprint(public)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (directory / "allowed_signers").open("a") as file:
        file.write(f'{name} namespaces="{NAMESPACE}" {words[0]} {words[1]}\n')
    return found


def allowed(directory: Path) -> dict[str, str]:
    """The names of the known signers by the fingerprints of their keys.

    Lines with options that this does not understand (authorities, times) allow nothing.
    """
    try:
        lines = (directory / "allowed_signers").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        words = line.split()
        if len(words) < 3 or words[0].startswith("#"):
            continue
        options = words[1] if _blob(words[2]) is None else ""
        public = words[2:4] if options else words[1:3]
        if options and options != f'namespaces="{NAMESPACE}"':
            continue
        if len(public) == 2 and _blob(public[1]) is not None:
            found.setdefault(compute_fingerprint(" ".join(public)), words[0])
    return found


def _blob(text: str) -> bytes | None:
    """A public key's bytes, which begin with the length and the name of their kind."""
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return blob if len(blob) > 32 and blob[:3] == b"\0\0\0" else None


def _run(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            [_PROGRAM, *words],
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise NoProgram(
            "signatures need ssh-keygen, which is not installed",
            hint="apt install openssh-client (Debian), dnf install openssh (Fedora)",
        ) from error
