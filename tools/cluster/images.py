"""Container images without a registry: built by buildah, written to archives, imported on nodes.

The images of `deploy/images` are built from the very Containerfiles that a user with a registry
builds; only the image they begin with is made here, by debootstrap. Layers and archives are kept
beside the binaries, and an archive is named after what its image is built from, so what did not
change costs a look at those files. buildah gets a storage and a mount namespace of its own: the
user's images stay as they are, and a killed build leaves no mount.
"""

import configparser
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.cluster import image_archives
from tools.cluster.binaries import locked
from tools.cluster.commands import ClusterError, report, run, step
from tools.cluster.image_archives import context_digest

SOURCE = Path(__file__).resolve().parents[2]
CONTAINERFILES = Path(__file__).resolve().parent / "containerfiles"

RELEASE = "bookworm"
BASE = f"localhost/debian:{RELEASE}"
ON_BASE = ("--build-arg", f"BASE={BASE}")
EMPTIED = (  # as the slim images of Debian do
    *("usr/share/doc", "usr/share/man", "usr/share/info", "usr/share/locale"),
    *("var/cache/apt/archives", "var/lib/apt/lists", "var/log"),
)

PAUSE = "registry.k8s.io/pause:3.10"
BUSYBOX = "docker.io/library/busybox:1.35"

# This machine's package index and the certificates it is trusted by: pip in a build needs them too.
PIP = Path("/etc/pip.conf")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True)
class Image:
    name: str
    archive: Path  # its layers are not compressed, so it is about as large as the image's files


def build_images(*, bare: bool = False) -> tuple[Image, ...]:
    """The images that a cluster needs and, unless `bare`, the project's own.

    Images whose files changed are built again.
    """
    image_archives.archive_directory().mkdir(parents=True, exist_ok=True)
    images = [_pause(), _busybox()]
    if not bare:
        images += map(_project_image, project_images())
        image_archives.delete_old([image.archive for image in images])
    for image in images:
        report(f"{image.archive.stat().st_size / 1e6:6.1f} MB {image.name}")
    return tuple(images)


def project_images() -> dict[str, Path]:
    """The project's own images: name and Containerfile."""
    files = sorted((SOURCE / "deploy" / "images").glob("*/Containerfile"))
    return {f"docker.io/clew/{file.parent.name}:{_version()}": file for file in files}


def _version() -> str:
    found = re.search(
        r'^__version__ = "(.+)"$', (SOURCE / "src/clew/__init__.py").read_text(), re.M
    )
    assert found is not None
    return found[1]


def _project_image(name: str) -> Image:
    return build_image(name, project_images()[name])


def build_image(name: str, file: Path) -> Image:
    """An image on BASE, from a Containerfile whose context is the source tree."""

    def archive() -> Path:
        return image_archives.archive_path(name, context_digest(file, SOURCE, *ON_BASE))

    while not image_archives.touch_existing(wanted := archive()):
        with _build_lock():
            _build_on_base(name, file, SOURCE)
            if archive() == wanted:  # no file was edited during the build
                _save(name, wanted)
    return Image(name, wanted)


def build_without_archive(name: str, file: Path, context: Path) -> None:
    """Build an image that no cluster needs."""
    image_archives.archive_directory().mkdir(parents=True, exist_ok=True)
    with _build_lock():
        _build_on_base(name, file, context)


def _build_on_base(name: str, file: Path, context: Path) -> None:
    """Build an image that begins with BASE, and remove the one that had its name."""
    if not _image_id(BASE):
        _make_base()
    before = _image_id(name)
    _build(name, file, context, *ON_BASE)
    if before not in ("", _image_id(name)):
        _buildah("rmi", before)


def _pause() -> Image:
    source = CONTAINERFILES / "pause" / "pause.c"

    def fill(context: Path) -> None:
        run("cc", "-static", "-Os", "-s", "-o", f"{context}/pause", str(source))

    return _single_file_image(PAUSE, CONTAINERFILES / "pause" / "Containerfile", source, fill)


def _busybox() -> Image:
    found = shutil.which("busybox")
    assert found is not None, "tools/debian-packages cluster provides it"

    def fill(context: Path) -> None:
        shutil.copy(found, context)
        for folder in ("tmp", "root", "etc"):
            (context / "folders" / folder).mkdir(parents=True)
        (context / "folders/tmp").chmod(0o1777)

    return _single_file_image(
        BUSYBOX, CONTAINERFILES / "busybox" / "Containerfile", Path(found), fill
    )


def _single_file_image(name: str, file: Path, source: Path, fill: Callable[[Path], None]) -> Image:
    """An image of one file. Its archive is found without buildah, which may be locked for long."""
    made_of = hashlib.sha256(file.read_bytes() + source.read_bytes()).hexdigest()[:12]
    archive = image_archives.archive_path(name, made_of)
    if not image_archives.touch_existing(archive):
        with _build_lock(), tempfile.TemporaryDirectory() as context:
            fill(Path(context))
            _build(name, file, Path(context))
            _save(name, archive)
    return Image(name, archive)


def _make_base() -> None:
    with (
        step(f"made {BASE} by debootstrap"),
        tempfile.TemporaryDirectory(dir=image_archives.archive_directory()) as place,
    ):
        Path(place).chmod(0o755)
        root = Path(place) / "root"
        _run_isolated(
            *("debootstrap", "--variant=minbase", "--include=ca-certificates", RELEASE, str(root)),
        )
        for left in EMPTIED:
            shutil.rmtree(root / left)
            (root / left).mkdir()
        mirror = "http://deb.debian.org"
        (root / "etc/apt/sources.list").write_text(
            f"deb {mirror}/debian {RELEASE} main\n"
            f"deb {mirror}/debian {RELEASE}-updates main\n"
            f"deb {mirror}/debian-security {RELEASE}-security main\n"
        )
        container = _buildah("from", "scratch").strip()
        _buildah("add", "-q", container, str(root), "/")
        _buildah("config", "--cmd", "bash", container)
        _buildah("commit", "-q", "--rm", container, BASE)


@contextmanager
def _build_lock() -> Iterator[None]:
    """Build one image at a time, after removing the containers of a killed build."""
    with locked(image_archives.archive_directory() / "building.lock"):
        try:
            _buildah("rm", "--all")
        except ClusterError:  # a build that outlived its killed parent removed one of them itself
            _buildah("rm", "--all")
        yield


def _build(name: str, file: Path, context: Path, *options: str) -> None:
    with step(f"built {name}"), _package_index() as borrowed:
        _buildah(
            *("build", "--layers", "--isolation", "chroot", "--network", "host"),
            *("--pull-never", *borrowed, *options, "--tag", name, "--file", str(file)),
            str(context),
        )


def _save(name: str, archive: Path) -> None:
    part = archive.with_suffix(".part")
    part.unlink(missing_ok=True)
    _buildah("push", "--quiet", name, f"docker-archive:{part}:{name}")
    part.rename(archive)


@contextmanager
def _package_index() -> Iterator[tuple[str, ...]]:
    """buildah's options that let pip find what it finds outside.

    The certificates are mounted where no package of the image has any: Debian's own would be
    replaced by whatever update the build installs.
    """
    place = "/run/certificates.crt"
    settings = configparser.ConfigParser(interpolation=None)
    settings.read_dict({"global": {}})
    settings.read(PIP)
    mounts = []
    with tempfile.NamedTemporaryFile("w") as file:
        if CERTIFICATES.exists():
            settings["global"]["cert"] = place
            mounts += [f"--volume={CERTIFICATES}:{place}:ro"]
        settings.write(file)
        file.flush()
        yield (*mounts, f"--volume={file.name}:{PIP}:ro")


def _image_id(name: str) -> str:
    """The id of the image with this name; empty without one."""
    images = json.loads(_buildah("images", "--json")) or []
    found = [image["id"] for image in images if name in (image.get("names") or [])]
    return str(found[0])[:12] if found else ""


def _buildah(*words: str) -> str:
    storage = (
        "--root",
        str(image_archives.archive_directory() / "storage"),
        "--runroot",
        "/run/containers/storage",
    )
    return _run_isolated("buildah", *storage, *words)


def _run_isolated(*words: str) -> str:
    """Run a program in a mount namespace of its own; its mounts end with it."""
    private = ("unshare", "--mount", "--propagation", "private", "sh", "-c")
    return run(*private, 'mount -t tmpfs tmpfs /run && exec "$@"', "sh", *words)
