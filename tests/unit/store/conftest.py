"""Two stores, between which content travels."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.store import Store


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "here") as store:
        yield store


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "there") as store:
        yield store
