"""A real Jupyter with the settings of our image: who reaches it past the server gets nothing."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.local.test_server_websockets import jupyter

CONFIG = Path(__file__).parents[2] / "deploy/images/jupyter/jupyter_server_config.py"
BASE = "/notebook/me/first/"
TOKEN = "the token of this notebook"
XSRF: dict[str, Any] = {"headers": {"X-XSRFToken": "beef"}, "cookies": {"_xsrf": "beef"}}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The API of a notebook that the operator gave an access token."""
    home = tmp_path_factory.mktemp("jupyter") / "home"
    digest = sha256(TOKEN.encode()).hexdigest()
    with jupyter(home, BASE, CONFIG, NB_PREFIX=BASE, CLEW_ACCESS_SHA256=digest) as port:
        yield f"http://127.0.0.1:{port}{BASE}api"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Clew-Access": ""},
        {"X-Clew-Access": "another"},
        {"X-Clew-Access": sha256(TOKEN.encode()).hexdigest()},
        {"Authorization": "token x"},
        {"Authorization": f"token {TOKEN}"},
    ],
)
def test_without_its_token_nothing_is_answered(api: str, headers: dict[str, str]) -> None:
    with httpx2.Client(**XSRF) as stranger:
        assert stranger.get(f"{api}/contents?token=", headers=headers).status_code == 403
        assert stranger.post(f"{api}/kernels", headers=headers).status_code == 403


def test_with_it_a_foreign_page_still_gets_nothing(api: str) -> None:
    """The token is added on the way, so it says nothing about who made the browser ask."""
    with httpx2.Client(headers={"X-Clew-Access": TOKEN}) as server:
        assert server.get(f"{api}/contents").status_code == 200
        assert server.post(f"{api}/terminals").status_code == 403
    own = {**XSRF["headers"], "X-Clew-Access": TOKEN}
    with httpx2.Client(headers=own, cookies=XSRF["cookies"]) as page:
        foreign = {"Origin": "http://evil.example"}
        assert page.post(f"{api}/terminals", headers=foreign).status_code == 404
        assert page.post(f"{api}/terminals").status_code == 200


def test_on_a_cluster_without_our_operator_it_asks_for_the_token_that_it_prints(
    tmp_path: Path,
) -> None:
    with jupyter(tmp_path / "home", BASE, CONFIG, NB_PREFIX=BASE) as port:
        place = f"http://127.0.0.1:{port}{BASE}api"
        assert httpx2.get(f"{place}/contents").status_code == 403
        assert httpx2.get(f"{place}/contents?token=").status_code == 403
