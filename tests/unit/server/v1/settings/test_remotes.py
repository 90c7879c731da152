"""Remotes that the server reads."""

from dataclasses import replace
from pathlib import Path

from tests.unit.server.served_project import BEARER, serve_project

from clew import settings


def test_remotes_of_a_project_from_elsewhere_are_not_read(tmp_path: Path) -> None:
    project, empty = tmp_path / "project", tmp_path / "remote"
    project.mkdir()
    empty.mkdir()
    with serve_project(project) as served:
        api, check = served.client, "/api/v1/remotes/theirs/check"
        added = {"name": "theirs", "url": str(empty)}
        assert api.post("/api/v1/remotes", json=added, headers=BEARER).status_code == 201
        assert api.post(check, headers=BEARER).json()["ok"]
        served.service.settings = replace(settings.load(), state=tmp_path / "of another user")
        refused = api.post(check, headers=BEARER)
        assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed")
