"""The environment of an execution: everything outside its files that can change its behavior.

Everything is read from files and from the process itself, which takes milliseconds. What is not
available is left out; nothing here can fail an execution. The only program it runs is git, and only
inside a repository.
"""

import os
import re
import resource
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clew.packages.os_release import read_os_release
from clew.prov.locators import decode_text
from clew.redaction import Redactor
from clew.witness.accelerators import find_accelerators

_GIT_SECONDS = 3.0
_LIMITS = (
    "AS",
    "CORE",
    "CPU",
    "DATA",
    "FSIZE",
    "MEMLOCK",
    "NOFILE",
    "NPROC",
    "RSS",
    "STACK",
)


def facets(
    cwd: Path, environ: Mapping[str, str], redactor: Redactor, *, machine: str = ""
) -> dict[str, Any]:
    """The facets of an execution's `started` event. `machine` is the name used in locators."""
    facets: dict[str, Any] = {
        "cwd": decode_text(os.fspath(cwd)),
        **machine_facets(Path("/"), environ, machine=machine),
        "libc": _libc(),
        "locale": _locale(environ),
        "timezone": _timezone(environ),
        "umask": _umask(),
        "limits": _limits(),
        "user": _user(),
        **_variables(environ, redactor),
    }
    return {name: value for name, value in facets.items() if value not in (None, "", {}, [])}


def machine_facets(root: Path, environ: Mapping[str, str], *, machine: str = "") -> dict[str, Any]:
    """The facets that describe a machine. `root`: where its files are, if this runs in a container
    on it."""
    system = os.uname()
    facets: dict[str, Any] = {
        "kernel": {"name": system.sysname, "release": system.release, "version": system.version},
        "os": _os_release(root),
        "cpu": _cpu(system.machine),
        "memory": _memory(),
        "machine": machine or _read(root / "etc/machine-id"),
        "hostname": system.nodename,
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        **find_accelerators(root, environ),
    }
    return {name: value for name, value in facets.items() if value not in (None, "", {}, [])}


def describe_git(cwd: Path, environ: Mapping[str, str]) -> dict[str, str | bool | None] | None:
    """The commit and branch of the repository that contains `cwd`, and whether tracked files differ
    from the commit.

    None without a repository or git, or if git does not trust the repository. `dirty` is None if
    the comparison takes too long; `commit` is None before the first commit. Untracked files do not
    make a repository dirty: the record contains them anyway.
    """
    top = next((f for f in (cwd, *cwd.parents) if os.path.lexists(f / ".git")), None)
    if top is None:
        return None
    answer = _git(
        top, environ, "status", "--porcelain=v2", "--branch", "-uno", "--ignore-submodules"
    )
    if answer is None:
        commit = _git(top, environ, "rev-parse", "--verify", "HEAD")
        return {"commit": commit.strip(), "dirty": None} if commit else None
    lines = answer.splitlines()
    oid = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    if not oid:
        return None
    head = next((line for line in lines if line.startswith("# branch.head ")), "")
    branch = head.removeprefix("# branch.head ")
    return {
        "commit": None if oid == "(initial)" else oid,
        "dirty": any(not line.startswith("#") for line in lines),
        "branch": None if branch in ("", "(detached)") else branch,
    }


def _git(top: Path, environ: Mapping[str, str], *arguments: str) -> str | None:
    import subprocess  # only needed in a repository

    variables = {n: environ[n] for n in ("PATH", "HOME", "XDG_CONFIG_HOME") if n in environ}
    variables |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        completed = subprocess.run(
            # the settings of a repository must not make git run other programs
            ("git", "-c", "core.fsmonitor=false", "-C", os.fspath(top), *arguments),
            check=False,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.decode(errors="replace") if completed.returncode == 0 else None


def _variables(environ: Mapping[str, str], redactor: Redactor) -> dict[str, Any]:
    """The variables as text, and in addition the exact bytes of those that are not UTF-8."""
    text: dict[str, str] = {}
    exact: dict[str, str] = {}
    for name, value in redactor.environment(environ).items():
        text[decode_text(name)] = decode_text(value)
        if decode_text(name) != name or decode_text(value) != value:
            raw = value.encode(errors="surrogateescape")
            exact[decode_text(name)] = b64encode(raw).decode()
    return {
        "variables": text,
        "variables_b64": exact,
        "redacted": sorted(map(decode_text, redactor.names & environ.keys())),
    }


def _cpu(machine: str) -> dict[str, Any]:
    """Describe the first processor only: there may be hundreds, and reading each takes time."""
    lines: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", "rb", buffering=8192) as file:
            for line in file:
                name, colon, value = line.decode(errors="replace").partition(":")
                if not colon:
                    break
                lines[name.strip()] = value.strip()
    except OSError:
        pass
    flags = lines.get("flags") or lines.get("Features") or ""
    model = lines.get("model name") or lines.get("Model") or lines.get("cpu model")
    fields = {
        "architecture": machine,
        "model": model or " ".join(lines.get(n, "") for n in ("CPU implementer", "CPU part")),
        "microcode": lines.get("microcode", ""),
        "flags": sorted(flags.split()),
        "count": os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
    }
    return {name: value for name, value in fields.items() if value}


def _memory() -> dict[str, int]:
    sizes: dict[str, int] = {}
    for line in _read("/proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        if name in ("MemTotal", "SwapTotal"):
            sizes[{"MemTotal": "total", "SwapTotal": "swap"}[name]] = int(value.split()[0]) * 1024
    return sizes


def _os_release(root: Path) -> dict[str, str]:
    values = read_os_release(root)
    return {n.lower(): values[n] for n in ("ID", "VERSION_ID", "PRETTY_NAME") if n in values}


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):  # not glibc
        return "musl" if any(Path("/lib").glob("ld-musl-*")) else ""


def _locale(environ: Mapping[str, str]) -> dict[str, str]:
    names = sorted(n for n in environ if n in ("LANG", "LANGUAGE") or n.startswith("LC_"))
    return {name: decode_text(environ[name]) for name in names}


def _timezone(environ: Mapping[str, str]) -> str:
    if environ.get("TZ"):
        return decode_text(environ["TZ"])
    try:
        target = os.path.realpath("/etc/localtime")
    except OSError:
        target = ""
    zone = re.search(r"/zoneinfo/(?:posix/|right/)?(.+)$", target)
    return zone[1] if zone else _read("/etc/timezone")


def _umask() -> str:
    match = re.search(r"^Umask:\s*(\d+)", _read("/proc/self/status"), re.MULTILINE)
    return match[1] if match else ""


def _limits() -> dict[str, list[int | None]]:
    """Soft and hard limit; None: unlimited."""
    limits: dict[str, list[int | None]] = {}
    for name in _LIMITS:
        both = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        limits[name.lower()] = [None if n == resource.RLIM_INFINITY else n for n in both]
    return limits


def _user() -> dict[str, Any]:
    uid = os.getuid()
    return {"name": find_user_name(uid), "uid": uid, "gid": os.getgid(), "groups": os.getgroups()}


def find_user_name(uid: int) -> str:
    """The name of a user; the uid if it has none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _read(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode(errors="replace").strip()
    except OSError:
        return ""
