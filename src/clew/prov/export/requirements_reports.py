"""The requirements of an execution, in the forms people pass on: a requirements file, the command
that installs system packages, a section for a README.

Text made from the `show --detail` document: nothing is read from the machine, so the reports
are right on any machine that holds the record.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

_INSTALL = {
    "deb": "apt-get install --yes",
    "rpm": "dnf install --assumeyes",
    "conda": "conda install --yes",
}
_TITLES = {"deb": "Debian packages", "rpm": "RPM packages", "conda": "conda packages"}
_MOST_FILES = 20
"""A README names no more files than this of one kind; the rest are counted."""

_CODE = re.compile(r"\.(?:py|pyc|so|so\.[\d.]+)\Z|/bin/[^/]+\Z")
"""A file by which a Python package is imported or executed."""
_START_UP = re.compile(
    r"\.(?:dist|egg)-info/|/_distutils_hack/|/_virtualenv\.py|/__editable__"
    r"|/clew/pipelines/tasks/(?:launcher|containers/container_wrapper)\.py\Z"
)
"""Files that every Python of an environment, or Clew itself, reads."""

File = Mapping[str, Any]


def format_requirements(files: Iterable[File]) -> str:
    """A requirements.txt: the requested packages, then their dependencies, all pinned."""
    requested, dependencies = _split(_python_packages(files))
    lines = ["# Python packages that were imported or executed."]
    lines += map(format_requirement, requested)
    if dependencies:
        lines += ["", "# Installed as dependencies; pinned to get the same versions again."]
        lines += map(format_requirement, dependencies)
    return "\n".join(lines) + "\n"


def list_requested_packages(files: list[File]) -> list[Mapping[str, Any]]:
    """The packages that the user installed, Python's first; without dependencies of others."""
    found = [*_python_packages(files), *(p for m in _INSTALL for p in _packages(files, m))]
    return [package for package in found if package.get("requested")]


def format_system_packages(files: Iterable[File]) -> str:
    """The commands that install the requested system packages; dependencies are comments.

    Distributions keep few versions, so pinned dependencies would often be unavailable.
    """
    files = list(files)
    sections = []
    for manager, command in _INSTALL.items():
        packages = _packages(files, manager)
        if not packages:
            continue
        native = most_common_architecture(packages)
        requested, dependencies = (
            [format_pinned_package(p, native) for p in half] for half in _split(packages)
        )
        lines = [f"# {_TITLES[manager]} whose files were used."]
        if requested:
            lines.append(" \\\n    ".join([command, *map(shlex.quote, requested)]))
        if dependencies:
            lines += ["# Came along with these:", *(f"#   {name}" for name in dependencies)]
        sections.append("\n".join(lines) + "\n")
    return "\n".join(sections)


def format_readme(execution: Mapping[str, Any], files: Iterable[File]) -> str:
    """A README section: what was run, what it needs, what goes in and comes out, how to run it."""
    files = list(files)
    command = shlex.join(map(str, execution.get("command", ())))
    title = execution.get("name") or command.split("\n")[0][:60]
    blocks = [
        f"## {_plain(title)}",
        *_format_summary(execution),
        _code(f"cd {_quoted(execution)}\n{command}"),
    ]
    for heading, chosen in _lists(files):
        if chosen:
            blocks += [f"### {heading}", _listing(chosen)]
    needs = _needs(execution, files)
    if needs:
        blocks += ["### Needs", *needs]
    return "\n\n".join(blocks) + "\n"


def _format_summary(execution: Mapping[str, Any]) -> list[str]:
    facts = [f"Recorded as `{execution['id']}`"] if execution.get("id") else ["Recorded"]
    if execution.get("started"):
        facts.append(f"on {execution['started']}")
    if execution.get("agent"):
        facts.append(f"by {_plain(execution['agent'])}")
    seconds = execution.get("seconds")
    if isinstance(seconds, int | float):
        facts.append(f"in {seconds:.1f} s")
    status = execution.get("status")
    text = " ".join(facts) + (f", with status {status}." if status else ".")
    git = execution.get("git")
    if isinstance(git, Mapping) and git.get("commit"):
        state = " with changes that were not committed" if git.get("dirty") else ""
        text += f" The sources were at commit `{git['commit']}`{state}."
    return [text]


def _lists(files: list[File]) -> Iterable[tuple[str, list[File]]]:
    own = [f for f in files if f.get("class") not in ("package", "system")]
    inputs = [f for f in own if f.get("role") == "input"]
    yield "Code", [f for f in inputs if f.get("class") == "source"]
    yield "Inputs", [f for f in inputs if f.get("class") != "source"]
    yield "Outputs", [f for f in own if f.get("role") == "output"]


def _needs(execution: Mapping[str, Any], files: list[File]) -> list[str]:
    blocks = []
    python = format_requirements(files)
    if _python_packages(files):
        blocks += ["`requirements.txt`:", _code(python)]
    system = format_system_packages(files)
    if system:
        blocks += ["From the system:", _code(system)]
    environment = execution.get("environment") or {}
    secret = environment.get("redacted") if isinstance(environment, Mapping) else None
    if secret:
        names = ", ".join(f"`{_plain(name)}`" for name in secret)
        blocks.append(f"Set in the environment, their values are not recorded: {names}.")
    return blocks


def _python_packages(files: Iterable[File]) -> list[Mapping[str, Any]]:
    """Only what was imported or executed: many programs read the metadata of all packages."""
    named = ((str(file["path"]), file) for file in files)
    code = (f for path, f in named if _CODE.search(path) and not _START_UP.search(path))
    return _packages(code, "pypi")


def _packages(files: Iterable[File], manager: str) -> list[Mapping[str, Any]]:
    """One manager's packages, each once, in the order of their names."""
    found = {
        (str(p["name"]), str(p["version"]), str(p.get("arch") or "")): p
        for p in (file.get("package") for file in files)
        if p and p["manager"] == manager
    }
    return [found[key] for key in sorted(found)]


def _split(packages: list[Mapping[str, Any]]) -> tuple[list[Any], list[Any]]:
    """(requested or unknown, dependencies)."""
    dependencies = [p for p in packages if p.get("requested") is False]
    return [p for p in packages if p.get("requested") is not False], dependencies


def format_requirement(package: Mapping[str, Any]) -> str:
    """A Python package as pip expects it."""
    url = package.get("url")
    return f"{package['name']} @ {url}" if url else f"{package['name']}=={package['version']}"


def format_pinned_package(package: Mapping[str, Any], native: str) -> str:
    """A system package with its version, as its manager expects it."""
    name, version, arch = package["name"], package["version"], package.get("arch") or ""
    if package["manager"] == "rpm":
        return f"{name}-{version}" + (f".{arch}" if arch else "")
    foreign = package["manager"] == "deb" and arch not in ("", "all", native)
    return f"{name}:{arch}={version}" if foreign else f"{name}={version}"


def most_common_architecture(packages: list[Mapping[str, Any]]) -> str:
    all_of_them = [p["arch"] for p in packages if p.get("arch") not in (None, "", "all")]
    return max(set(all_of_them), key=all_of_them.count, default="")


def _listing(files: list[File]) -> str:
    lines = [f"- `{_plain(f['path'])}`{_size(f)}" for f in files[:_MOST_FILES]]
    if len(files) > _MOST_FILES:
        lines.append(f"- and {len(files) - _MOST_FILES} more")
    return "\n".join(lines)


def _size(file: File) -> str:
    size = file.get("size")
    if not isinstance(size, int):
        return ""
    digest = str(file.get("digest") or "")
    return f" ({size:,} bytes{', ' + digest[:19] if digest else ''})"


def _quoted(execution: Mapping[str, Any]) -> str:
    return shlex.quote(str(execution.get("cwd") or "."))


def _plain(text: object) -> str:
    """Untrusted text on one line, without backquotes, so that it cannot end its code span."""
    return " ".join(str(text).replace("`", "'").split())


def _code(text: str) -> str:
    """A fenced block; the fence is longer than any inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}sh\n{text.rstrip()}\n{fence}"
