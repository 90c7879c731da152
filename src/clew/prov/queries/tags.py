"""Tags: words that users attach to executions, stored as notes named `tag` and `untag`.

Notes are never overwritten, so removing a tag adds a note as well, and the later one counts. So two
projects that exchange their notes agree on the tags.
"""

import re
import time
from collections.abc import Iterable

from clew.errors import UsageError
from clew.prov.graph import Graph

TAG, UNTAG = "tag", "untag"
"""The names of the notes that add and remove a tag."""
MOST_TAGS = 100
"""Tags of one execution; a record from elsewhere may claim any number."""
_LAST_CHANGE = "SELECT max(at) FROM note WHERE activity = ? AND name IN ('tag', 'untag')"
_TAGS = """
SELECT activity, name, value FROM note WHERE name IN ('tag', 'untag') AND activity IN ({})
ORDER BY at, name, id
"""
IS_TAGGED = """
max(CASE t.name WHEN 'tag' THEN t.at ELSE -1 END)
  > max(CASE t.name WHEN 'tag' THEN -1 ELSE t.at END)
"""
"""SQL: in a group of notes `t` about one tag, whether the tag was added after it was removed."""
HAS_TAG = f"""
EXISTS (SELECT 1 FROM note t WHERE t.activity = x.id AND t.name IN ('tag', 'untag') AND {{}}
        GROUP BY t.value HAVING {IS_TAGGED})
"""  # noqa: S608
"""Whether the execution `x` has a tag for which a condition on `t.value` holds."""
_TAG = re.compile(r"[^\s:,\"'\\-][^\s:,\"'\\]{0,63}")


def is_tag(text: str) -> bool:
    return _TAG.fullmatch(text) is not None and text.isprintable()


def check_tag(text: str) -> None:
    if not is_tag(text):
        raise UsageError(
            f"{text[:100]!r} cannot be a tag: use up to 64 characters, no spaces, colons, commas"
            " or quotes, and no dash at the beginning",
            hint="clew tag ID NAME",
        )


def get_time_of_change(graph: Graph, execution: int) -> int:
    """The time for a new tag note of this execution: now, but after those that it has. A note from
    elsewhere may have any time, and must not undo what the user says after it."""
    ((last,),) = graph.connection.rows(_LAST_CHANGE, (execution,))
    return max(time.time_ns(), (last or 0) + 1)


def load_tags(graph: Graph, executions: Iterable[int]) -> dict[int, list[str]]:
    """The tags of these executions, by their keys, in the order they were given."""
    found: dict[int, dict[str, None]] = {}
    for key, name, value in graph.connection.rows_in(_TAGS, executions):
        tags = found.setdefault(key, {})
        tags.pop(value, None)
        if name == TAG and len(tags) < MOST_TAGS and is_tag(value):
            tags[value] = None
    return {key: list(tags) for key, tags in found.items()}
