"""Put the properties of activities side by side. No IO."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from msgspec import UNSET

from clew.documents.comparisons.side_by_side import ComparedRow, ComparedSection, SectionName
from clew.documents.ids import VersionId

SECTIONS: tuple[SectionName, ...] = get_args(SectionName)
MOST_ROWS = 1000
"""Rows of a section; rows that differ come first if there are more."""
_LONGEST_TEXT = 2000


@dataclass(frozen=True)
class Cell:
    """A property of one activity. `version`: the file that it is about."""

    value: Any
    version: VersionId | None = None


@dataclass
class Properties:
    """The properties of one activity, by section and name."""

    sections: dict[SectionName, dict[str, Cell]] = field(
        default_factory=lambda: {section: {} for section in SECTIONS}
    )

    def add(self, section: SectionName, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            if value is not None:
                self.sections[section][name[:_LONGEST_TEXT]] = Cell(_cut(value))

    def add_file(
        self, section: SectionName, name: str, value: Any, version: VersionId | None
    ) -> None:
        self.sections[section][name[:_LONGEST_TEXT]] = Cell(_cut(value), version)


def build_sections(activities: Sequence[Properties]) -> tuple[ComparedSection, ...]:
    """All sections that any of these activities has."""
    sections = (
        _build_section(name, [properties.sections[name] for properties in activities])
        for name in SECTIONS
    )
    return tuple(section for section in sections if section.rows)


def _build_section(section: SectionName, columns: Sequence[Mapping[str, Cell]]) -> ComparedSection:
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [_build_row(name, [column.get(name) for column in columns]) for name in names]
    shown = rows
    if len(rows) > MOST_ROWS:
        shown = sorted(rows, key=lambda row: not row.differs)[:MOST_ROWS]
    return ComparedSection(name=section, rows=tuple(shown), left_out=len(rows) - len(shown))


def _build_row(name: str, cells: Sequence[Cell | None]) -> ComparedRow:
    values = tuple(cell.value if cell else None for cell in cells)
    versions = tuple(cell.version if cell else None for cell in cells)
    return ComparedRow(
        name=name,
        values=values,
        differs=any(not _is_same(value, values[0]) for value in values[1:]),
        versions=versions if any(versions) else UNSET,
    )


def _is_same(a: Any, b: Any) -> bool:
    """For Python, true and 1 are equal."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


def _cut(value: Any) -> Any:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value
