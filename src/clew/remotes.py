"""A project's named remotes: `.clew/remotes.json`, written by `clew remote`.

{"default": "origin", "remotes": {"origin": "s3://bucket/paper"}}
"""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from clew.atomic_file import write_atomically
from clew.errors import ClewError, Exists, NotFound, UsageError

FILE = "remotes.json"
FIRST = "origin"
"""The name of the remote that a project was pulled from."""
_NAME = re.compile(r"[A-Za-z][\w.-]{0,63}")


@dataclass
class Remotes:
    """The remotes of one project. `save` writes them."""

    path: Path
    default: str | None = None
    urls: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, url: str, *, make_default: bool = False) -> None:
        """Add a remote; the first one is the default."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is not a name for a remote",
                hint="a name starts with a letter and has letters, digits, `.`, `_` and `-`",
            )
        if name in self.urls:
            raise Exists(f"there is a remote {name} already", hint=f"clew remote remove {name}")
        self.urls[name] = url if "://" in url else os.path.abspath(url)
        if make_default or self.default is None:
            self.default = name

    def remove(self, name: str) -> None:
        if name not in self.urls:
            raise NotFound(f"no remote {name}", hint="clew remote list")
        del self.urls[name]
        if self.default == name:
            self.default = next(iter(self.urls), None)

    def save(self) -> None:
        document = {"default": self.default, "remotes": self.urls}
        write_atomically(self.path, json.dumps(document, indent=2).encode(), mode=0o666)


def load(directory: Path) -> Remotes:
    """The remotes of the project whose `.clew` is `directory`."""
    path = directory / FILE
    try:
        document = json.loads(path.read_bytes())
        urls = {str(name): str(url) for name, url in document["remotes"].items()}
        default = document["default"] if document["default"] in urls else None
    except FileNotFoundError:
        return Remotes(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ClewError(
            f"{path} cannot be read: {error}", hint="repair or delete it; clew remote add"
        ) from error
    return Remotes(path, default, urls)
