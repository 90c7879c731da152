"""The drawings of a lineage: what they say, and that no name breaks out of them."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.lineage import dot, page, tree
from clew.cli.output import escape

Node = dict[str, Any]


def file(path: str, execution: str = "e1", **facts: Any) -> Node:
    return {
        "id": f"{execution}:{path}@1", "kind": "file", "label": path, "path": path,
        "execution": execution, "digest": "blake3:" + "ab" * 32, "size": 12_300, **facts,
    }  # fmt: skip


def process(id_: str, *command: str, **facts: Any) -> Node:
    return {
        "id": id_, "kind": "process", "label": " ".join(command), "command": list(command),
        "execution": id_.split(".", maxsplit=1)[0], **facts,
    }  # fmt: skip


def document(*chain: tuple[Node, str, Node], direction: str = "up", target: str = "") -> Node:
    nodes: dict[str, Node] = {}
    for start, _, end in chain:
        nodes.setdefault(start["id"], start)
        nodes.setdefault(end["id"], end)
    edges = [{"from": start["id"], "to": end["id"], "kind": kind} for start, kind, end in chain]
    target = target or chain[0][2]["id"]
    return {"target": target, "direction": direction, "nodes": list(nodes.values()), "edges": edges,
            "roots": [target], "truncated": False}  # fmt: skip


MODEL, CLEAN = file("model.pkl"), file("clean.csv")
CONFIG = file("c.yaml", found=True, changed_outside=True)
RAW = file("raw.csv", found=True, source="https://example.org/raw.csv")
TRAIN = process("e1.p4", "python", "train.py", hidden=412)
PREPARE = process("e1.p2", "python", "prepare.py")
UP = document(
    (TRAIN, "generated", MODEL),
    (CLEAN, "used", TRAIN),
    (PREPARE, "generated", CLEAN),
    (RAW, "used", PREPARE),
    (CONFIG, "used", TRAIN),
)


def drawn(doc: Node, **options: bool) -> str:
    return "\n".join(map(click.unstyle, tree.lines(doc, **options)))


def test_a_tree_upwards() -> None:
    assert drawn(UP) == (
        "model.pkl (e1, 12.3 kB, blake3:abababab)\n"
        "└─ python train.py  e1.p4\n"
        "   ├─ clean.csv\n"
        "   │  └─ python prepare.py  e1.p2\n"
        "   │     └─ raw.csv  found by e1 (source: https://example.org/raw.csv)\n"
        "   ├─ c.yaml  changed outside  found by e1\n"
        "   └─ … 412 files of installed packages (--all)"
    )


def test_a_tree_downwards() -> None:
    down = {**UP, "direction": "down", "target": RAW["id"], "roots": [RAW["id"]]}
    assert drawn(down) == (
        "raw.csv (e1, 12.3 kB, blake3:abababab) (source: https://example.org/raw.csv)\n"
        "└─ python prepare.py  e1.p2\n"
        "   └─ clean.csv\n"
        "      └─ python train.py  e1.p4\n"
        "         └─ model.pkl"
    )


def test_a_chain_that_was_cut_does_not_say_found() -> None:
    assert "clean.csv  made by e1" in drawn(
        document((TRAIN, "generated", MODEL), (CLEAN, "used", TRAIN))
    )


def test_inferred_links_are_dotted_and_name_the_likeliest_first() -> None:
    same = [
        {"execution": f"e{n}", "path": f"{NASTY}{n}", "strength": "weak", "member": member}
        for n, member in enumerate(["in\x1b.csv", None, None, None, None])
    ]
    copy = file("copy.csv", "e9", found=True, same_content=same)
    doc = document((TRAIN, "generated", MODEL), (copy, "used", TRAIN), (RAW, "same_content", copy))
    text = drawn(doc)
    names = [f"e{n}:{escape(NASTY)}{n}" for n in range(3)]
    found = f"in\\e.csv in {names[0]} (weak) or {names[1]} or {names[2]} or 2 more"
    assert f"├─ copy.csv  found by e9, same bytes as {found}\n   │  └┄ raw.csv  found by e1" in text
    [edge] = [line for line in dot.lines(doc) if "same bytes" in line and "->" in line]
    assert "style=dotted" in edge


def test_a_subtree_is_drawn_once() -> None:
    join, left, right = process("e1.p9", "join"), file("left"), file("right")
    doc = document(
        (join, "generated", MODEL), (left, "used", join), (right, "used", join),
        (PREPARE, "generated", left), (PREPARE, "generated", right), (RAW, "used", PREPARE),
    )  # fmt: skip
    assert drawn(doc).count("found by") == 1
    assert "python prepare.py  e1.p2  see above" in drawn(doc)


def test_installed_files_are_one_line_without_all() -> None:
    owner = {"manager": "pypi", "name": "numpy", "version": "1"}
    installed = [file(f"/lib/{n}.py", **{"class": "package", "package": owner}) for n in range(3)]
    run = process("e1.p1", "python")
    doc = document((run, "generated", MODEL), *((one, "used", run) for one in installed))
    assert "… 3 files of numpy (--all)" in drawn(doc)
    assert "/lib/2.py" not in drawn(doc)
    assert "/lib/2.py" in drawn(doc, everything=True)
    assert "/lib/2.py" not in "\n".join(dot.lines(doc))


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain, before = [], MODEL
    for n in range(3000):
        step, source = process(f"e1.p{n}", "step"), file(f"f{n}")
        chain += [(step, "generated", before), (source, "used", step)]
        before = source
    assert drawn(document(*chain)).count("\n") == 6000


def test_two_processes_that_talk_both_ways_end_the_walk() -> None:
    a, b = process("e1.p1", "a"), process("e1.p2", "b")
    doc = document((a, "generated", MODEL), (b, "informed", a), (a, "informed", b))
    assert "see above" in drawn(doc)


def test_an_execution_shows_its_processes() -> None:
    run = {"id": "e1", "kind": "execution", "label": "e1"}
    doc = document((run, "part", PREPARE), (RAW, "used", PREPARE), target="e1")
    assert drawn(doc).startswith("e1\n└─ python prepare.py  e1.p2\n   └─ raw.csv")


NASTY = '</script><script>alert(1)</script><!-- "\\ \u2028 \x1b[31m & é'


def test_no_name_reaches_the_terminal_raw() -> None:
    doc = document((process("e1.p1", NASTY), "generated", file(NASTY)))
    assert "\x1b" not in drawn(doc)


class Page(HTMLParser):
    """What a browser would see: the elements, and the text inside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script" and self.scripts:
            self.scripts[-1] += data


def test_a_page_carries_all_it_needs() -> None:
    text = page.render(UP, version="1")
    seen = Page(text)
    assert [tag for tag, _ in seen.elements].count("script") == 2
    for _, attributes in seen.elements:
        assert not {"src", "href", "srcset", "action"} & set(attributes)
    assert "@import" not in text
    assert "url(" not in text.replace("url(#arrow)", "")
    assert not re.search(
        r"fetch\(|XMLHttpRequest|WebSocket|innerHTML|outerHTML|insertAdjacent", text
    )


@pytest.mark.parametrize("name", [NASTY, "@@data@@", "<b>", "\udcff"])
def test_a_name_stays_data_in_a_page(name: str) -> None:
    doc = document((process("e1.p1", name), "generated", file(name)))
    text = page.render(doc, version="1")
    text.encode()
    seen = Page(text)
    plain = Page(page.render(UP, version="1"))
    assert [tag for tag, _ in seen.elements] == [tag for tag, _ in plain.elements]
    data = json.loads(seen.scripts[0])
    assert {node["kind"] for node in data["nodes"]} == {"file", "process"}


@given(st.text(max_size=40))
def test_data_reads_back_from_a_page(name: str) -> None:
    doc = document((process("e1.p1", "x"), "generated", file("f" + name)))
    data = json.loads(Page(page.render(doc, version="1")).scripts[0])
    assert len(data["nodes"]) == 2
    assert len(data["edges"]) == 1


def test_dot_quotes_its_labels() -> None:
    doc = document((process("e1.p1", "x"), "generated", file('a"b\\c')))
    text = "\n".join(dot.lines(doc))
    assert 'label="a\\"b\\\\c\\ne1"' in text
    assert text.count(" -> ") == 1
