"""The rights to Secrets that the manifests give: to read and fill those that they contain."""

from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"


def manifests() -> list[dict[str, Any]]:
    files = [file for file in DEPLOY.rglob("*.yaml") if "crds" not in file.parts]
    return [one for file in files for one in yaml.safe_load_all(file.read_text()) if one]


def test_no_program_may_create_secrets_or_read_others() -> None:
    empty = {one["metadata"]["name"] for one in manifests() if one.get("kind") == "Secret"}
    assert empty == {"clew-server", "clew-access", "clew-inject"}
    rules = [
        rule
        for one in manifests()
        if one.get("kind") in ("Role", "ClusterRole")
        for rule in one["rules"]
        if {"secrets", "*"} & set(rule["resources"])
    ]
    assert len(rules) == 3
    for rule in rules:
        assert set(rule["resourceNames"]) <= empty
        assert rule["verbs"] == ["get", "update"]


def test_applying_the_secrets_again_does_not_empty_them() -> None:
    for one in manifests():
        if one.get("kind") == "Secret":
            assert not {"data", "stringData"} & one.keys()
