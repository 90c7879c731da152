"""Shell completion: the scripts for each shell, and what they ask `clew` for.

A script passes the words of the command line in COMP_WORDS, one per line, the unfinished one last.
It gets one candidate per line: `plain`, `file` or `dir`, the text, and a description, separated by
tabs. For `file` and `dir` the shell itself completes paths.
"""

import os

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_CLEW_COMPLETE"


def read_script(shell: str) -> str:
    from importlib import resources  # slow to load, and only this command needs it

    return resources.files(__name__).joinpath(f"clew.{shell}").read_text("utf-8")


@add_completion_class
class LineComplete(ShellComplete):
    """The protocol of our scripts."""

    name = "lines"

    def get_completion_args(self) -> tuple[list[str], str]:
        words = os.environ.get("COMP_WORDS", "").split("\n")
        return words[1:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("--json="):  # its value is optional, and differs by document
            return []
        return super().get_completions(args, incomplete)

    def format_completion(self, item: CompletionItem) -> str:
        option, equals, _ = self.get_completion_args()[1].partition("=")
        whole = item.value
        if item.type == "plain" and equals and option.startswith("--"):
            whole = f"{option}={whole}"  # click leaves the option out
        texts = (item.type, whole, item.help or "")
        return "\t".join(" ".join(text.split("\n")).replace("\t", " ") for text in texts)
