"""Whether a text can be read at all: one that nests without end would end who reads it.

The YAML library goes down into what is nested by calling itself, with no bound, and takes the whole
process with it when the stack is full. Its parser does not: so a text that may be that deep is only
parsed first, which tells how deep it is. Most cannot be, as a look at it shows.
"""

from __future__ import annotations

import re

DEEPEST = 500
_LEADING = re.compile(r"^[ ?-]+", re.MULTILINE)


def too_deep(text: str) -> bool:
    """Whether it nests deeper than any pipeline would; where it is no YAML, up to there."""
    lines = (len(found[0]) for found in _LEADING.finditer(text))
    if text.count("[") + text.count("{") + 2 * max(lines, default=0) <= DEEPEST:
        return False
    import yaml

    depth = 0
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > DEEPEST:
                return True
    except yaml.YAMLError:
        pass  # who reads it is told why
    return False
