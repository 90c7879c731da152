"""The lineage page in a real browser: what is drawn first, and what clicks and keys do to it."""

# ruff: noqa: E501  (the scenarios are JavaScript, a statement a line)

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page
from tests.unit.cli.lineage.test_drawing import document, file, process

from clew.cli.lineage.page import render

HELPERS = """
const seen = {};
const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
const nodes = () => texts("#world .node .title");
const find = (title) => [...document.querySelectorAll("#world .node")].find((n) => n.querySelector(".title").textContent === title);
const click = (element, more) => element.dispatchEvent(new MouseEvent("click", { bubbles: true, ...more }));
const key = (element, key) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const type = (text) => { const box = document.getElementById("search"); box.value = text; box.dispatchEvent(new Event("input")); return box; };
"""


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    with browser.new_page() as opened:
        yield opened


def look(page: Page, doc: dict[str, Any], scenario: str, folder: Path, state: str = "") -> Any:
    """Open the page of `doc`, run `scenario` in it, and return what it put into `seen`."""
    path = folder / "page.html"
    path.write_text(render(doc, version="1"))
    page.goto("about:blank")
    page.goto(f"{path.as_uri()}{state}")
    return page.evaluate(f"() => {{ {HELPERS} {scenario}; return seen; }}")


MODEL = file("model.pkl")
TRAIN, SORT = process("e1.p1", "python", "train.py"), process("e1.p2", "sort")
PARTS = [file(f"part-{n}.csv") for n in range(30)]
FEATURES, NOTES = file("features.csv"), file("notes.txt")
SMALL = document(
    (TRAIN, "generated", MODEL),
    (FEATURES, "used", TRAIN),
    (NOTES, "used", TRAIN),
    (SORT, "generated", FEATURES),
    *((part, "used", SORT) for part in PARTS),
)


def test_similar_files_are_grouped_until_expanded(page: Page, tmp_path: Path) -> None:
    seen = look(
        page,
        SMALL,
        """
        seen.first = nodes();
        click(find("30 files"));
        seen.panel = texts("#panel h2");
        seen.members = texts("#panel .link .name").length;
        click([...document.querySelectorAll("#panel button")].find((b) => b.textContent.startsWith("Draw")));
        seen.open = nodes();
        """,
        tmp_path,
    )
    whole = {"model.pkl", "python train.py", "features.csv", "notes.txt", "sort"}
    assert set(seen["first"]) == whole | {"30 files"}
    assert seen["panel"] == ["30 files"]
    assert seen["members"] == 30
    assert set(seen["open"]) == whole | {part["label"] for part in PARTS}


def test_own_files_are_drawn_and_fit_the_window_and_only_others_are_left_out(
    page: Page, tmp_path: Path
) -> None:
    own = [file(f"in/own.{n}") for n in range(20)]
    others = [file(f"/usr/lib/thing{n}.{n}", **{"class": "system"}) for n in range(200)]
    seen = look(
        page,
        document((SORT, "generated", MODEL), *((one, "used", SORT) for one in own + others)),
        """
        seen.nodes = nodes();
        const frame = document.getElementById("drawing").getBoundingClientRect();
        seen.outside = [...document.querySelectorAll("#world .node")].map((n) => n.getBoundingClientRect())
          .filter((b) => b.left < frame.left || b.right > frame.right || b.top < frame.top || b.bottom > frame.bottom).length;
        """,
        tmp_path,
    )
    assert set(seen["nodes"]) == {"model.pkl", "sort", "… 200 more", *(one["label"] for one in own)}
    assert seen["outside"] == 0


def test_many_own_files_without_likeness_stand_as_one_for_each_directory(
    page: Page, tmp_path: Path
) -> None:
    own = [file(f"{folder}/own.{n}") for folder in ("in", "cfg") for n in range(40)]
    doc = document((SORT, "generated", MODEL), *((one, "used", SORT) for one in own))
    seen = look(page, doc, 'seen.nodes = nodes(); seen.subs = texts("#world .node .sub")', tmp_path)
    assert sorted(seen["nodes"]) == ["40 files", "40 files", "model.pkl", "sort"]
    assert {"in in", "in cfg"} <= set(seen["subs"])


def test_a_long_path_keeps_its_end(page: Page, tmp_path: Path) -> None:
    far, deep = (
        file("/srv/pipelines/r1/train/model"),
        file("runs/of/a/long/and/deep/tree/train/model"),
    )
    seen = look(
        page,
        document((SORT, "generated", MODEL), (far, "used", SORT), (deep, "used", SORT)),
        "seen.nodes = nodes()",
        tmp_path,
    )
    assert set(seen["nodes"]) == {"model.pkl", "sort", "…/train/model", "…/tree/train/model"}


def test_sides_fold_and_unfold(page: Page, tmp_path: Path) -> None:
    seen = look(
        page,
        SMALL,
        """
        click(find("sort").querySelector('.handle[data-side="<"]'));
        seen.folded = nodes();
        seen.handle = find("sort").querySelector('.handle[data-side="<"]').getAttribute("aria-label");
        click(find("sort").querySelector('.handle[data-side="<"]'));
        seen.unfolded = nodes();
        """,
        tmp_path,
    )
    assert "30 files" not in seen["folded"]
    assert seen["handle"] == "Show 1 more sources of sort"
    assert "30 files" in seen["unfolded"]


def test_search_centres_and_the_address_keeps_it(page: Page, tmp_path: Path) -> None:
    seen = look(
        page,
        SMALL,
        """
        key(type("part-17"), "Enter");
        seen.selected = texts("#world .selected .title");
        seen.hash = location.hash;
        const box = find("part-17.csv").getBoundingClientRect(), svg = document.getElementById("drawing").getBoundingClientRect();
        seen.off = Math.hypot(box.x + box.width / 2 - svg.x - svg.width / 2, box.y + box.height / 2 - svg.y - svg.height / 2);
        """,
        tmp_path,
    )
    assert seen["selected"] == ["part-17.csv"]
    assert seen["off"] < 20
    again = look(
        page,
        SMALL,
        'seen.selected = texts("#world .selected .title"); seen.h = location.hash',
        tmp_path,
        seen["hash"],
    )
    assert again == {"selected": ["part-17.csv"], "h": seen["hash"]}


def test_the_path_between_two_nodes(page: Page, tmp_path: Path) -> None:
    seen = look(
        page,
        SMALL,
        """
        click(find("features.csv"));
        click(find("model.pkl"), { shiftKey: true });
        seen.on = texts("#world .node.on .title");
        seen.off = texts("#world .node.off .title");
        key(document.body, "Escape");
        seen.cleared = texts("#world .node.on .title");
        """,
        tmp_path,
    )
    assert set(seen["on"]) == {"features.csv", "python train.py", "model.pkl"}
    assert "notes.txt" in seen["off"]
    assert seen["cleared"] == []


def test_the_keyboard_reaches_everything(page: Page, tmp_path: Path) -> None:
    seen = look(
        page,
        SMALL,
        """
        const focused = () => document.activeElement.querySelector(".title").textContent;
        document.querySelector('#world [tabindex="0"]').focus();
        seen.steps = [focused()];
        for (const name of ["ArrowLeft", "ArrowLeft", "ArrowDown", "ArrowUp"]) { key(document.activeElement, name); seen.steps.push(focused()); }
        key(document.activeElement, "Enter");
        seen.panel = texts("#panel h2");
        seen.tabbable = document.querySelectorAll('#world [tabindex="0"]').length;
        key(document.body, "t");
        seen.rows = document.querySelectorAll("#table-view tbody tr").length;
        """,
        tmp_path,
    )
    assert seen["steps"][:2] == ["model.pkl", "python train.py"]
    assert seen["steps"][2] in ("features.csv", "notes.txt")
    assert seen["panel"] == [seen["steps"][-1]]
    assert seen["tabbable"] == 1
    assert seen["rows"] == len(SMALL["nodes"])


def test_the_table_is_sorted_and_filtered(page: Page, tmp_path: Path) -> None:
    seen = look(
        page,
        SMALL,
        'seen.names = texts("#table-view tbody .link"); seen.sort = texts("th[aria-sort=descending]")',
        tmp_path,
        "#view=table&q=part-1&sort=1.down",
    )
    assert seen["names"] == [f"part-{n}.csv" for n in (19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 1)]
    assert seen["sort"] == ["Name ▼"]


def test_nothing_overlaps_in_a_tangle(page: Page, tmp_path: Path) -> None:
    steps = [process(f"e1.p{n}", f"step{n}", str(n)) for n in range(40)]
    made = [file(f"d/f{n}.x{n}") for n in range(40)]
    chain = [(steps[n], "generated", made[n]) for n in range(40)]
    chain += [(made[n], "used", steps[m]) for n in range(40) for m in (n // 2, n // 3) if m < n]
    seen = look(
        page,
        document((steps[0], "generated", made[0]), *chain),
        """
        click(document.getElementById("all"));
        const boxes = [...document.querySelectorAll("#world .node")].map((n) => n.querySelector(".body").getBoundingClientRect());
        seen.count = boxes.length;
        seen.overlaps = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => a.x < b.right - 1 && b.x < a.right - 1 && a.y < b.bottom - 1 && b.y < a.bottom - 1)).length;
        """,
        tmp_path,
    )
    assert seen["count"] == 80
    assert seen["overlaps"] == 0


def test_a_name_that_looks_like_markup_is_drawn_as_it_is(page: Page, tmp_path: Path) -> None:
    nasty = "</script><img src=x onerror=alert(1)>"
    doc = document((process("e1.p1", "x"), "generated", file(nasty)))
    seen = look(
        page,
        doc,
        'seen.titles = nodes().length; seen.images = document.images.length; seen.h1 = texts("h1")',
        tmp_path,
    )
    assert seen["titles"] == 2
    assert seen["images"] == 0
    assert nasty in seen["h1"][0]
