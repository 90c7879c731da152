"""`clew pipeline resume`: resume a run that did not succeed."""

import click

from clew.cli.commands.pipeline.run import jobs_option, run_with_progress
from clew.cli.completion.candidates import complete_runs
from clew.cli.options import json_option


@click.command("resume", short_help="Resume a run.", epilog="Example: clew pipeline resume r2")
@click.argument("run", metavar="RUN", shell_complete=complete_runs)
@jobs_option
@json_option
def command(run: str, jobs: int | None, as_json: bool) -> int:
    """Resume a run that failed, was canceled or was killed. Tasks that succeeded are not run again;
    all others are. The exit statuses are those of `clew pipeline run`.
    """
    import clew

    with clew.open() as project:
        return run_with_progress(
            lambda **more: project.pipelines.resume(run, jobs=jobs, **more), as_json
        )
