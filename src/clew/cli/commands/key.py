"""`clew key`: manage the signing key and the known signers."""

import getpass
import socket
from pathlib import Path

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import escape, print_json, print_line, print_message, print_table


@click.group("key", short_help=COMMANDS["key"], epilog="Example: clew key create")
def command() -> None:
    """Manage the key that signs executions, and the keys of known signers.

    Keys are SSH keys. Once a key is set, `clew push` signs the executions recorded here.
    """


@command.command("create", epilog="Example: clew key create")
@json_option
def create(as_json: bool) -> None:
    """Create a key and use it for signing.

    It is an ed25519 key in the user's configuration directory.
    """
    from clew import signing

    signing.create_key(_config_directory(), _owner())
    _print_key(as_json)


@command.command("use", epilog="Example: clew key use ~/.ssh/id_ed25519")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def use(file: Path, as_json: bool) -> None:
    """Use the SSH key FILE for signing.

    Signing may ask for its passphrase. FILE may be a public key if an SSH agent holds the private
    key.
    """
    from clew import signing

    signing.use_key(_config_directory(), file, _owner())
    _print_key(as_json)


@command.command("show", epilog="Example: clew key show")
@json_option
def show(as_json: bool) -> None:
    """Print the public key that others need to verify your signatures."""
    _print_key(as_json)


@command.command("allow", epilog="Example: clew key allow ann@example.org ann.pub")
@click.argument("name")
@click.argument("key")
@json_option
def allow(name: str, key: str, as_json: bool) -> None:
    """Trust KEY, a public key or a file with one, as the key of NAME.

    Executions that NAME signed are shown with that name, and their results may be reused instead
    of running them again.
    """
    from clew import signing

    text = key if " " in key.strip() else signing.read_public_key(Path(key))
    fingerprint = signing.allow(_config_directory(), name, text)
    if as_json:
        print_json({"name": name, "fingerprint": fingerprint})
    else:
        print_message(f"signatures by {fingerprint} are now shown as {escape(name)}")


@command.command("list", epilog="Example: clew key list")
@json_option
def list_keys(as_json: bool) -> None:
    """List the known signers."""
    from clew import signing

    known = signing.allowed(_config_directory())
    if as_json:
        print_json([{"name": name, "fingerprint": key} for key, name in known.items()])
    elif known:
        print_table(("name", "fingerprint"), ((escape(n), f) for f, n in known.items()))
    else:
        print_message("there are no known signers; add one with: clew key allow NAME KEY")


def _print_key(as_json: bool) -> None:
    from clew import signing
    from clew.errors import NotFound

    key = signing.find_signing_key(_config_directory())
    if key is None:
        raise NotFound("no signing key is set", hint="clew key create")
    public = signing.read_public_key(key)
    if as_json:
        fingerprint = signing.compute_fingerprint(public)
        print_json({"file": str(key), "public": public, "fingerprint": fingerprint})
    else:
        print_line(public)


def _config_directory() -> Path:
    from clew.settings import load

    return load().config


def _owner() -> str:
    return f"{getpass.getuser()}@{socket.gethostname()}"
