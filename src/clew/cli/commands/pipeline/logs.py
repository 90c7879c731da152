"""`clew pipeline logs`: print the output of a task."""

import click

from clew.cli.completion.candidates import complete_tasks
from clew.cli.options import json_option
from clew.cli.output import print_bytes, print_json


@click.command(
    "logs", short_help="Print the output of a task.", epilog="Example: clew pipeline logs r1/train"
)
@click.argument("task", metavar="RUN/TASK", shell_complete=complete_tasks)
@click.option("--follow", "-f", is_flag=True, help="Follow the output until the task ends.")
@json_option
def command(task: str, follow: bool, as_json: bool) -> None:
    """Print stdout and stderr of the last attempt of a task; of a running task, what there is."""
    import clew

    with clew.open() as project:
        output = project.pipelines.logs(task, follow=follow)
        if as_json:
            text = b"".join(output).decode(errors="replace")
            print_json({"task": project.pipelines.task(task).id, "log": text})
            return
        for chunk in output:
            print_bytes(chunk)
