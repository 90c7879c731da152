from pathlib import Path

import pytest
from tests.unit.store.remotes.sample_remotes import Made, fill, opened, send

from clew.store import Store


@pytest.fixture
def shared(tmp_path: Path) -> tuple[Path, Made]:
    """A remote with some contents."""
    with Store(tmp_path / "here") as store, opened(tmp_path / "r", make=True) as remote:
        made = fill(store)
        send(store, remote, made)
    return tmp_path / "r", made
