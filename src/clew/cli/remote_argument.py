"""Resolve the remote that the arguments of `push` or `pull` name."""

import re

import click
from click.shell_completion import CompletionItem

from clew.cli.completion.candidates import complete_executions
from clew.errors import NotAllowed, NotFound

_ID = re.compile(r"e[1-9]\d*|r[1-9]\d*(/.+)?|latest")


def resolve_remote(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The address, and the other words, which are ids.

    The first word is the name of a remote or an address. Without one, or if the first word is an
    id such as e2, r1/train or latest, the default remote is meant. Remotes of a project that came
    with a repository do not count: they could lead what is pushed to its author.
    """
    from clew import project_directory, settings
    from clew.remotes import load

    chosen = settings.load()
    project = project_directory.find_here(chosen)
    accepted = project is not None and project_directory.is_accepted(project, chosen)
    remotes = load(project.path) if project is not None and accepted else None
    if words and remotes and words[0] in remotes.urls:
        return remotes.urls[words[0]], words[1:]
    if words and not _ID.fullmatch(words[0]):
        return words[0], words[1:]
    if remotes is None or remotes.default is None:
        if project is not None and not accepted:
            raise NotAllowed(
                f"you did not make the project in {project.root}, so its remotes are not used",
                hint="name an address, or accept the project: clew init --trust",
            )
        raise NotFound(
            "no remote is given, and there is no default remote", hint="clew remote add NAME URL"
        )
    return remotes.urls[remotes.default], words


def complete_remotes(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete names of remotes, executions and files: a remote may be a directory."""
    from clew import project_directory, settings
    from clew.errors import ClewError
    from clew.remotes import load

    project = project_directory.find_here(settings.load())
    try:
        names = load(project.path).urls if project else {}
    except ClewError:
        names = {}
    found = [CompletionItem(n, help=url) for n, url in names.items() if n.startswith(incomplete)]
    found += complete_executions(ctx, param, incomplete)
    return [*found, CompletionItem(incomplete, type="file")]
