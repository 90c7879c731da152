"""`clew pipeline resume`: go on with a run that did not come to its end."""

from __future__ import annotations

import click

from clew.cli.commands.pipeline.run import carried_out, jobs_option
from clew.cli.options import json_option


@click.command("resume", short_help="Go on with a run.", epilog="Example: clew pipeline resume r2")
@click.argument("run", metavar="RUN")
@jobs_option
@json_option
def command(run: str, jobs: int | None, as_json: bool) -> int:
    """Go on with a run that failed, was canceled or was killed. Tasks that are done stay done; all
    others run. Exits as `clew pipeline run` does.
    """
    import clew

    with clew.open() as project:
        return carried_out(lambda **more: project.pipelines.resume(run, jobs=jobs, **more), as_json)
