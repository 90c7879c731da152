"""`clew cat`: print a version of a file."""

import click

from clew.cli.main import COMMANDS
from clew.cli.options import json_option, version_argument
from clew.cli.output import print_bytes, print_json


@click.command(
    "cat", short_help=COMMANDS["cat"], epilog="Example: clew cat e1:data.csv@input | head"
)
@version_argument
@json_option
def command(version: str, as_json: bool) -> None:
    """Print the content of VERSION.

    e2:PATH is the file as execution e2 left it, e2:PATH@input as e2 found it, and e2:PATH@N the
    N-th version that e2 used. e2:stdout and e2:stderr are what it printed. r1/train:model is an
    artifact of a pipeline run; one without a file, such as metrics, is printed as JSON. A digest
    (blake3:…, at least 8 digits) names content at any path.

    With --json the content is base64-encoded in a document.
    """
    import clew
    from clew.api.pipeline_artifacts import is_artifact, read_artifact

    with clew.open() as project:
        chunks = (
            read_artifact(project, version) if is_artifact(version) else project.chunks(version)
        )
        if not as_json:
            for chunk in chunks:
                print_bytes(chunk)
            return
        content = b"".join(chunks)
    from base64 import b64encode

    print_json(
        {"version": version, "size": len(content), "content_b64": b64encode(content).decode()}
    )
