"""The names of buckets in the settings of a Pod: find them, and put fresh ones in their place.

A bucket may be called `data`, as a directory or a mode may be. So a name counts only where it can
name nothing else: in an address, after a word with `bucket` in it, or as a whole value.
"""

import re
from collections.abc import Mapping
from functools import cache


def replace(text: str, buckets: Mapping[str, str]) -> str:
    """The text with the fresh name of each bucket."""
    if text in buckets:
        return buckets[text]
    for name, fresh in buckets.items():
        if name in text:
            text = _expression(name).sub(rf"\g<before>{fresh}", text)
    return text


def contains(text: str, name: str) -> bool:
    return text == name or (name in text and _expression(name).search(text) is not None)


@cache
def _expression(name: str) -> re.Pattern[str]:
    before = (
        r"\bs3[an]?://",  # s3://bucket/key
        r"""\bhttps?://[^/\s"']+/""",  # http://endpoint/bucket/key
        r"""(?i:bucket)\w*["']?(?:\s*[:=]\s*|\s+)["']?""",  # --bucket NAME, "bucket": "NAME"
    )
    return re.compile(rf"(?P<before>{'|'.join(before)}){re.escape(name)}(?![A-Za-z0-9.-])")
