"""Classify a file: data, configuration, source, package or system.

The owner counts first: files of a language's package manager are `package`, those of the system's
are `system`. Other files are classified by the part of their path that the user chose; see
`docs/reference/files.md`.
"""

from typing import Literal

Class = Literal["data", "configuration", "source", "package", "system"]

_LANGUAGES = ("pkg:pypi/", "pkg:npm/", "pkg:cran/", "pkg:gem/", "pkg:cargo/", "pkg:maven/")
_SITES = (b"/site-packages/", b"/dist-packages/")
_SYSTEM = (
    b"/bin/",
    b"/boot/",
    b"/dev/",
    b"/etc/",
    b"/lib/",
    b"/lib32/",
    b"/lib64/",
    b"/proc/",
    b"/run/",
    b"/sbin/",
    b"/sys/",
    b"/usr/",
    b"/var/cache/",
    b"/var/lib/",
)
"""Directories whose unowned files are the machine's own: made by installers, the kernel, the
administrator."""

_SOURCE = frozenset(
    b"bash c cc cpp cs css csh cu cuh cxx cwl d dart do el erl ex exs f f03 f08 f77 f90 f95 fish"
    b" for go gradle groovy h hh hpp hs hxx ipynb j2 java jinja jl js jsx kt ksh lua m mjs mk ml"
    b" mli nf nim php pl pm proto ps1 pth pxd pxi py pyi pyw pyx qmd r rb rmd rs s sas scala sed"
    b" awk sh smk sql stan sty svelte swift tcl tex tf ts tsx vue wdl zig zsh cmake"
    b" a class dll dylib egg exe jar o pyc pyd so wasm whl".split()
)
_SOURCE_NAMES = frozenset(
    b"makefile gnumakefile dockerfile containerfile snakefile rakefile justfile jenkinsfile"
    b" vagrantfile cmakelists.txt meson.build sconstruct sconscript configure".split()
)
_CONFIGURATION = frozenset(
    b"cfg cnf conf config env hcl ini lock plist properties tfvars toml yaml yml".split()
)
_CONFIGURATION_NAMES = frozenset(
    b"package.json package-lock.json tsconfig.json composer.json pipfile manifest.in".split()
)
_CONFIGURATION_WORDS = frozenset(
    b"config configuration constraints hparams hyperparameters options parameters params"
    b" requirements settings".split()
)


def classify(path: bytes, package: str | None, *, executable: bool = False) -> Class:
    """The class of a file. `executable` says that it was executed, or may be."""
    if package is not None:
        if package.startswith(_LANGUAGES):
            return "package"
        of_language = package.startswith("pkg:conda/") and any(site in path for site in _SITES)
        return "package" if of_language else "system"
    if path.startswith(_SYSTEM) and not path.startswith(b"/dev/shm/"):
        return "system"
    if any(site in path for site in _SITES):
        return "package"
    return _by_name(path, executable)


def _by_name(path: bytes, executable: bool) -> Class:
    directory, _, name = path.lower().rpartition(b"/")
    stem, dot, suffix = name.rpartition(b".")
    if name in _SOURCE_NAMES or (stem and suffix in _SOURCE) or b".so." in name:
        return "source"
    if (
        _configures(name, stem, suffix)
        or directory.endswith(b"/.config")
        or b"/.config/" in directory
    ):
        return "configuration"
    if executable and not (stem and dot):
        return "source"  # a program or script; on some disks every file may be executed
    return "data"


def _configures(name: bytes, stem: bytes, suffix: bytes) -> bool:
    if name in _CONFIGURATION_NAMES or (stem and suffix in _CONFIGURATION):
        return True
    if name.startswith(b".") and (not stem or name.endswith(b"rc")):
        return True  # .gitignore, .bashrc
    words = stem.replace(b"-", b"_").replace(b".", b"_").split(b"_")
    return suffix in (b"json", b"xml", b"txt") and not _CONFIGURATION_WORDS.isdisjoint(words)
