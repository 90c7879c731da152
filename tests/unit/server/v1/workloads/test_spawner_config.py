"""The administrator's form: read again when it changes, enforced, and never the server's end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient
from tests.unit.server.served_project import Served

NOTEBOOKS = "/jupyter/api/namespaces/local/notebooks"


@pytest.fixture
def file(served: Served) -> Iterator[Path]:
    path = served.service.directory.path / "spawner_ui_config.yaml"
    yield path
    path.unlink(missing_ok=True)


def write(file: Path, **fields: Any) -> None:
    """As an editor does: a new file takes the place of the old one."""
    draft = file.with_suffix(".draft")
    draft.write_text(yaml.safe_dump({"spawnerFormDefaults": fields}))
    draft.replace(file)


def create(api: TestClient, name: str, **body: Any) -> tuple[int, str]:
    answer = api.post(NOTEBOOKS, json={"name": name, **body})
    return answer.status_code, answer.json().get("log", "")


def error(api: TestClient) -> str | None:
    found: str | None = api.get("/api/v1/backend").json()["spawner_error"]
    return found


IMAGE = {"value": "lab:1", "options": ["lab:1", "lab:2"]}


def test_a_change_of_the_file_counts_at_once(api: TestClient, file: Path) -> None:
    assert api.get("/jupyter/api/config").json()["config"]["image"]["value"] == "this-machine"
    write(file, image=IMAGE, allowCustomImage=False)
    assert api.get("/jupyter/api/config").json()["config"] == {
        "image": IMAGE,
        "allowCustomImage": False,
    }
    assert create(api, "one", image="lab:2")[0] == 200
    refused = create(api, "two", image="this-machine")
    assert (refused[0], "does not allow the image" in refused[1]) == (400, True)
    file.unlink()
    assert api.get("/jupyter/api/config").json()["config"]["image"]["value"] == "this-machine"


def test_what_is_fixed_cannot_be_changed_in_any_way(
    api: TestClient, served: Served, file: Path
) -> None:
    write(
        file,
        image={**IMAGE, "readOnly": True},
        cpu={"value": "1", "limitFactor": "none", "readOnly": True},
        memory={"value": "2Gi", "limitFactor": "none", "readOnly": False},
        environment={"value": {"PROXY": "http://proxy"}, "readOnly": True},
        shm={"value": False, "readOnly": True},
    )
    assert create(api, "fixed", memory="1Gi")[0] == 200
    [made] = [
        one
        for one in served.backend.list("Notebook", "local")
        if one["metadata"]["name"] == "fixed"
    ]
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["env"]) == (
        "lab:1",
        [{"name": "PROXY", "value": "http://proxy"}],
    )
    assert container["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    change: dict[str, Any]
    for change in (
        {"image": "lab:2"},
        {"customImage": "lab:2"},
        {"cpu": "8"},
        {"cpuLimit": "8"},
        {"environment": {}},
        {"shm": True},
    ):
        status, log = create(api, "other", **change)
        assert (status, "set by the administrator" in log) == (400, True), change
        edited = api.patch("/api/v1/namespaces/local/notebooks/fixed", json=change)
        assert (edited.status_code, "set by the administrator" in edited.json()["title"]) == (
            400,
            True,
        ), change
    path = "/api/v1/namespaces/local/notebooks/fixed"
    given = yaml.safe_load(api.get(path).json()["yaml"])
    spec = given["spec"]["template"]["spec"]["containers"][0]
    for name, value in (
        ("image", "lab:2"),
        ("resources", {"requests": {"cpu": "8"}}),
        ("env", []),
    ):
        kept, spec[name] = spec[name], value
        edited = api.put(f"{path}/yaml", json={"yaml": yaml.safe_dump(given)})
        assert (edited.status_code, edited.json()["code"]) == (400, "usage"), name
        spec[name] = kept
    spec["resources"]["requests"]["memory"] = "4Gi"
    assert api.put(f"{path}/yaml", json={"yaml": yaml.safe_dump(given)}).is_success


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spawnerFormDefaults: [", "not valid YAML"),
        ("a: 1", "spawnerFormDefaults is missing"),
        ("spawnerFormDefaults: {cpu: 3}", "cpu must be a mapping"),
        ("spawnerFormDefaults: {cpu: {value: many}}", "cpu.value"),
        ("spawnerFormDefaults: {image: {options: lab}}", "image.options"),
        ("spawnerFormDefaults: {image: {value: a, readOnly: maybe}}", "readOnly"),
        ("spawnerFormDefaults: {gpus: {value: {vendors: [{}]}}}", "vendors"),
        ("spawnerFormDefaults: {dataVolumes: {value: {}}}", "dataVolumes"),
        ("spawnerFormDefaults: {allowCustomImage: 'no'}", "allowCustomImage"),
        ("\0", "not valid YAML"),
    ],
)
def test_a_malformed_file_changes_nothing(
    api: TestClient, file: Path, text: str, says: str
) -> None:
    write(file, image=IMAGE)
    assert error(api) is None
    before = api.get("/jupyter/api/config").json()["config"]
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(file)
    found = error(api)
    assert found is not None
    assert found.startswith("spawner_ui_config.yaml is not used: ")
    assert says in found
    assert api.get("/jupyter/api/config").json()["config"] == before
    write(file, image={**IMAGE, "value": "lab:2"})
    assert error(api) is None
    assert api.get("/jupyter/api/config").json()["config"]["image"]["value"] == "lab:2"
