"""Texts that are not pipelines, or would exhaust the parser's stack, are refused."""

import pytest

from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.parser import parse_pipeline

DEEP = "\n".join(" " * level + "a:" for level in range(505))


@pytest.mark.parametrize(
    "text",
    [
        "2001-99-99",
        "a: [",
        DEEP,
        *(part * 100_000 for part in ("[", "{", "{a: ", '{"a":', "- ", "? ")),
    ],
)
def test_malformed_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidPipeline):
        parse_pipeline(text)
