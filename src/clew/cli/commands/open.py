"""`clew open`: open a lineage or the server's page in a browser."""

import click

from clew.cli.completion.candidates import complete_targets
from clew.cli.main import COMMANDS
from clew.cli.options import json_option


@click.command(
    "open",
    short_help=COMMANDS["open"],
    epilog="Examples: clew open model.pkl | clew open data.csv --down | clew open --print",
)
@click.argument("target", metavar="[TARGET]", required=False, shell_complete=complete_targets)
@click.option("--down", is_flag=True, help="Show what was made from it.")
@click.option("--print", "print_only", is_flag=True, help="Print the page's file or address.")
@json_option
def command(target: str | None, down: bool, print_only: bool, as_json: bool) -> None:
    """Open the lineage of TARGET in the browser; without TARGET, the web app.

    The web app shows it where a server runs: the one that CLEW_SERVER names, or `clew up` in this
    project. Without a server it is a page of its own.

    TARGET is a file, a version (e2:PATH), an execution, a process, a run or a task, as for `clew
    trace`. Without a display the page's file or address is printed.
    """
    from clew.cli import web_page

    if target is not None:
        web_page.open_target(target, down=down, print_only=print_only, as_json=as_json)
    elif down:
        raise click.UsageError("--down needs a TARGET")
    else:
        web_page.open_server(_find_server(), print_only=print_only, as_json=as_json)


def _find_server() -> str:
    """The address of the server, with its token."""
    from clew.cli.app_address import find_app
    from clew.errors import NotFound

    app = find_app()
    if app is None:
        raise NotFound(
            "no server is set, and no TARGET is given",
            hint="clew open TARGET, or start the web app: clew up",
        )
    return app
