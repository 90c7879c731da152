"""`clew key`: the key that signs what is pushed, and whose signatures are known."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import clean, print_json, print_table, remark, say


@click.group("key", short_help=COMMANDS["key"], epilog="Example: clew key create")
def command() -> None:
    """Sign executions, and know who signed those that are pulled.

    Keys are SSH keys. Once there is one, `clew push` signs what was recorded here.
    """


@command.command("create", epilog="Example: clew key create")
@json_option
def create(as_json: bool) -> None:
    """Make a key, and sign with it from now on.

    It is an ed25519 key in the user's configuration folder.
    """
    from clew import signing

    signing.create_key(_folder(), _owner())
    _show(as_json)


@command.command("use", epilog="Example: clew key use ~/.ssh/id_ed25519")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def use(file: Path, as_json: bool) -> None:
    """Sign with the SSH key FILE from now on.

    It may ask for its passphrase when it signs. A public key will do if an SSH agent holds the
    private one.
    """
    from clew import signing

    signing.use_key(_folder(), file, _owner())
    _show(as_json)


@command.command("show", epilog="Example: clew key show")
@json_option
def show(as_json: bool) -> None:
    """Print the public key that others need to know you by."""
    _show(as_json)


@command.command("allow", epilog="Example: clew key allow ann@example.org ann.pub")
@click.argument("name")
@click.argument("key")
@json_option
def allow(name: str, key: str, as_json: bool) -> None:
    """Know KEY, a public key or a file with one, as that of NAME.

    What NAME signed is shown with that name, and may be reused instead of running it again.
    """
    from clew import signing

    text = key if " " in key.strip() else signing.public_key(Path(key))
    found = signing.allow(_folder(), name, text)
    if as_json:
        print_json({"name": name, "fingerprint": found})
    else:
        remark(f"signatures by {found} are now shown as {clean(name)}")


@command.command("list", epilog="Example: clew key list")
@json_option
def list_keys(as_json: bool) -> None:
    """List the signers that are known."""
    from clew import signing

    known = signing.allowed(_folder())
    if as_json:
        print_json([{"name": name, "fingerprint": found} for found, name in known.items()])
    elif known:
        print_table(("name", "fingerprint"), ((clean(n), f) for f, n in known.items()))
    else:
        remark("no signer is known; begin with: clew key allow NAME KEY")


def _show(as_json: bool) -> None:
    from clew import signing
    from clew.errors import NotFound

    key = signing.signing_key(_folder())
    if key is None:
        raise NotFound("no signing key is set", hint="clew key create")
    public = signing.public_key(key)
    if as_json:
        found = signing.fingerprint(public)
        print_json({"file": str(key), "public": public, "fingerprint": found})
    else:
        say(public)


def _folder() -> Path:
    from clew.settings import load

    return load().config


def _owner() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"
