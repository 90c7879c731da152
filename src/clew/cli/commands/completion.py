"""`clew completion`: print the completion script of a shell."""

import click

from clew.cli.completion import SHELLS, read_script
from clew.cli.main import COMMANDS
from clew.cli.options import json_option
from clew.cli.output import print_json, print_line


@click.command(
    "completion",
    short_help=COMMANDS["completion"],
    epilog='Example: eval "$(clew completion bash)"',
)
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
def command(shell: str, as_json: bool) -> None:
    """Print a script that completes commands, options, ids and recorded paths in SHELL.

    Put the line of the example into ~/.bashrc or ~/.zshrc; for fish, put
    `clew completion fish | source` into ~/.config/fish/config.fish.
    """
    script = read_script(shell)
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        print_line(script.rstrip("\n"))
