"""The plan of a process: its command, environment and directories.

A notebook's root directory contains one link for each of its volumes, and `project`. The root
cannot be written, so nothing is saved where it would be deleted with the notebook.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clew.errors import ClewError, NotFound
from clew.kube.controller.status_reasons import Reason
from clew.kube.objects import Json, Key, Object, dig, name_of
from clew.kube.resources.tensorboards import parse_logspath
from clew.kube.workload_tokens import VARIABLE
from clew.settings import OWN
from clew.workloads.local.installer import Interpreters
from clew.workloads.local.resource_files import NAMESPACE, ResourceFiles
from clew.workloads.local.volume_directories import PROJECT, VolumeDirectories
from clew.workloads.notebooks import container_of
from clew.workloads.volumes import claims_of

_LAUNCHERS = Path(__file__).parent / "launchers"
_HOME = "/home/jovyan"
"""Where notebooks mount their workspace."""


class CannotStart(Exception):
    """Why a resource cannot be started, for its status."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason


@dataclass(frozen=True)
class LaunchPlan:
    """Placeholders `{port}`, `{ports}` and `{digest}` stand for what is chosen at the start: a free
    port, the file for the port, and the digest of the access token."""

    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Path] = field(default_factory=dict)
    """The volumes of a notebook by the names they have in its root directory."""
    home: str = PROJECT
    """The link that it opens first."""

    @property
    def digest(self) -> str:
        """Changes when the process must be started again."""
        links = {name: str(path) for name, path in self.links.items()}
        parts = [self.command, str(self.directory), dict(self.environment), links, self.home]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class Planner:
    def __init__(
        self,
        files: ResourceFiles,
        volumes: VolumeDirectories,
        interpreters: Interpreters,
        root: Path,
    ) -> None:
        self._files = files
        self._volumes = volumes
        self._interpreters = interpreters
        self._root = root

    def plan(self, resource: Object) -> LaunchPlan:
        """Raises CannotStart."""
        try:
            if resource["kind"] == "Notebook":
                return self._plan_notebook(resource)
            if resource["kind"] == "Tensorboard":
                return self._plan_tensorboard(resource)
            return self._plan_viewer(resource)
        except NotFound as error:
            raise CannotStart(Reason("VolumeMissing", _sentence(error))) from error
        except ClewError as error:
            raise CannotStart(Reason("InvalidSpec", _sentence(error))) from error

    def claim(self, name: str) -> Json:
        if name == PROJECT:
            return self._volumes.project_claim()
        return self._files.get(Key("PersistentVolumeClaim", NAMESPACE, name))

    def _plan_notebook(self, notebook: Object) -> LaunchPlan:
        python = self._interpreters.find("jupyterlab") or self._interpreters.find("jupyter-server")
        if python is None:
            raise CannotStart(_not_installed("JupyterLab", "jupyterlab ipykernel"))
        has_lab = self._interpreters.find("jupyterlab") is not None
        links, home = self._links(notebook)
        prefix = f"/notebook/{NAMESPACE}/{name_of(notebook)}/"
        environment = {
            str(variable["name"]): str(variable.get("value") or "")
            for variable in container_of(notebook).get("env") or ()
        }
        return LaunchPlan(
            command=(
                *(python, str(_LAUNCHERS / "jupyter_main.py")),
                "jupyterlab" if has_lab else "jupyter_server",
                f"--config={_LAUNCHERS / 'jupyter_config.py'}",
                f"--ServerApp.base_url={prefix}",
                "--ServerApp.port={port}",
            ),
            directory=self._root,
            environment=environment | {"NB_PREFIX": prefix.rstrip("/"), VARIABLE: "{digest}"},
            links=links,
            home=home,
        )

    def _links(self, notebook: Object) -> tuple[dict[str, Path], str]:
        """The links of a notebook's root, and the one for its workspace."""
        volumes = {
            volume["name"]: dig(volume, "persistentVolumeClaim", "claimName")
            for volume in dig(notebook, "spec", "template", "spec", "volumes") or ()
        }
        links: dict[str, Path] = {}
        home = PROJECT
        for mount in container_of(notebook).get("volumeMounts") or ():
            claim = volumes.get(mount["name"])
            if not claim:
                continue
            place = self._volumes.path_in(self.claim(claim), str(mount.get("subPath") or ""))
            if not place.is_dir():
                raise NotFound(f"the volume {claim} has no directory {mount['subPath']}")
            links[mount["name"]] = place
            if mount.get("mountPath") == _HOME:
                home = mount["name"]
        links.setdefault(PROJECT, self._root)
        return links, home

    def _plan_tensorboard(self, board: Object) -> LaunchPlan:
        python = self._interpreters.find("tensorboard")
        if python is None:
            raise CannotStart(_not_installed("TensorBoard", "tensorboard"))
        source = parse_logspath(str(dig(board, "spec", "logspath")))
        if source.fault:
            raise CannotStart(Reason("InvalidSpec", source.fault))
        logs = source.directory
        if source.claim:
            logs = str(self._volumes.path_in(self.claim(source.claim), source.path))
        return LaunchPlan(
            command=(
                *(python, str(_LAUNCHERS / "tensorboard_main.py"), "{ports}"),
                *("--logdir", logs, "--host", "127.0.0.1", "--port", "0"),
                *("--path_prefix", f"/tensorboard/{NAMESPACE}/{name_of(board)}"),
                *("--load_fast", "false"),  # its data server would listen without a token
            ),
            directory=self._root,
            environment={VARIABLE: "{digest}"},
        )

    def _plan_viewer(self, viewer: Object) -> LaunchPlan:
        directory = self._volumes.path(self.claim(str(dig(viewer, "spec", "pvc"))))
        prefix = viewer_path(viewer)
        return LaunchPlan(
            command=(
                *(sys.executable, "-P", "-m", "clew", "viewer", str(directory), "--json"),
                *("--prefix", prefix, "--port", "0", "--access-digest", "{digest}"),
            ),
            directory=self._root,
        )


def viewer_path(viewer: Object) -> str:
    base = str(dig(viewer, "spec", "networking", "basePrefix") or "/pvcviewers").strip("/")
    base = base if base in ("pvcviewer", "pvcviewers") else "pvcviewers"
    return f"/{base}/{NAMESPACE}/{name_of(viewer)}/"


def claims_used_by(resource: Object) -> set[str]:
    """The volumes that a Notebook, Tensorboard or PVCViewer mounts."""
    if resource["kind"] == "Notebook":
        return claims_of(resource)
    if resource["kind"] == "Tensorboard":
        return {parse_logspath(str(dig(resource, "spec", "logspath"))).claim} - {""}
    return {str(dig(resource, "spec", "pvc"))}


def child_environment(plan: LaunchPlan, digest: str) -> dict[str, str]:
    """The server's own variables, without Clew's, and those of the plan. The programs beside the
    interpreter come first, such as its pip."""
    found = {name: value for name, value in os.environ.items() if name not in OWN}
    programs = str(Path(plan.command[0]).parent)
    found["PATH"] = os.pathsep.join(filter(None, (programs, found.get("PATH", ""))))
    return found | {n: digest if v == "{digest}" else v for n, v in plan.environment.items()}


def _not_installed(title: str, packages: str) -> Reason:
    how = f"Install it in the web app with one click, or with: pip install {packages}"
    return Reason("NotInstalled", f"{title} is not installed on this machine. {how}")


def _sentence(error: ClewError) -> str:
    text = error.message[:1].upper() + error.message[1:]
    return f"{text}. {error.hint}" if error.hint else f"{text}."
