"""Properties side by side: what differs, what is missing, and what is too much."""

from clew.api.local.comparison.comparison import _thin_out
from clew.api.local.comparison.table import MOST_ROWS, Properties, build_sections


def _build(*values: dict[str, object]) -> dict[str, tuple[tuple[object, ...], bool]]:
    columns = []
    for one in values:
        properties = Properties()
        properties.add("parameters", one)
        columns.append(properties)
    (section,) = build_sections(columns)
    return {row.name: (row.values, row.differs) for row in section.rows}


def test_a_row_has_a_value_for_each_and_tells_whether_they_differ() -> None:
    assert _build({"lr": 0.1, "n": 1, "on": True}, {"lr": 0.1, "on": 1}) == {
        "lr": ((0.1, 0.1), False),
        "n": ((1, None), True),
        "on": ((True, 1), True),
    }


def test_of_too_many_rows_those_that_differ_are_shown() -> None:
    same = {f"a{n}": n for n in range(MOST_ROWS)}
    columns = []
    for last in (1, 2):
        properties = Properties()
        properties.add("packages", {**same, "z": last})
        columns.append(properties)
    (section,) = build_sections(columns)
    assert (section.rows[0].name, section.left_out) == ("z", 1)
    assert len(section.rows) == MOST_ROWS


def test_files_have_versions_and_long_texts_are_cut() -> None:
    properties = Properties()
    properties.add_file("code", "train.py", "blake3:00", None)
    properties.add("command", {"command": "x" * 10_000})
    command, code = build_sections([properties, Properties()])
    assert len(command.rows[0].values[0]) == 2000
    assert code.rows[0].values == ("blake3:00", None)


def test_a_long_series_keeps_its_ends_and_gaps() -> None:
    points = [(step, float(step)) for step in range(5000)]
    points[-1] = (4999, float("nan"))
    thin = _thin_out(points)
    assert len(thin) <= 1001
    assert (thin[0], thin[-1]) == ((0.0, 0.0), (4999.0, None))
    assert _thin_out([]) == ()
