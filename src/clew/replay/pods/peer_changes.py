"""What changed behind a peer since Pods asked it: images and ConfigMaps of the Pods that answer."""

from collections.abc import Iterator, Mapping, Sequence

from clew.prov.cluster.ancestry_types import PeerPod

_MOST = 20


def explain_changes(then: Sequence[PeerPod], now: Sequence[PeerPod]) -> str:
    """How the Pods that answer now differ from those that answered then."""
    if not now:
        return "no Pod answers for it any more"
    if not then:
        return "which Pods answered then is not recorded"
    changes = [
        *_compare(_gather(one.images for one in then), _gather(one.images for one in now), "image"),
        *_compare(
            _gather(one.config_maps for one in then),
            _gather(one.config_maps for one in now),
            "ConfigMap",
        ),
    ]
    return ", ".join(changes[:_MOST]) if changes else ""


def _gather(found: Iterator[Mapping[str, str]]) -> dict[str, set[str]]:
    """The digests by name: of several Pods, not all may be alike."""
    digests: dict[str, set[str]] = {}
    for one in found:
        for name, digest in one.items():
            digests.setdefault(name, set()).add(digest)
    return digests


def _compare(then: Mapping[str, set[str]], now: Mapping[str, set[str]], kind: str) -> Iterator[str]:
    for name in sorted(then.keys() | now.keys()):
        was, is_now = then.get(name, set()), now.get(name, set())
        what = f"the {kind} {name}" if kind == "ConfigMap" else f"the image of {name}"
        if not is_now:
            yield f"{what} is gone"
        elif not was:
            yield f"{what} is new"
        elif was != is_now:
            yield f"{what} was {_list(was)}, and is {_list(is_now)}"


def _list(digests: set[str]) -> str:
    return " or ".join(sorted(digests))
