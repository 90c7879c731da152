"""What a scratch namespace has for the Pods of a reproduction, and what was found while they were
rewritten for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b


@dataclass(frozen=True)
class ScratchNamespace:
    """What the scratch namespace has for a Pod. Names are those in the namespace."""

    name: str
    labels: Mapping[str, str]
    deadline: int
    """Seconds, init containers included."""
    images: Mapping[str, str] = field(default_factory=dict)
    """The recorded digest of the image, by the name of the container."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """By the recorded name of the claim."""
    config_maps: Mapping[str, str] = field(default_factory=dict)
    """By the recorded name."""
    secret: str = ""
    given: frozenset[str] = frozenset()
    """The names of the values in `secret`: of variables, or paths of files."""
    buckets: Mapping[str, str] = field(default_factory=dict)
    """The fresh bucket for each recorded one."""


@dataclass(frozen=True)
class Findings:
    """Sentences about one Pod."""

    problems: list[str] = field(default_factory=list)
    """Why it cannot run."""
    missing: list[str] = field(default_factory=list)
    """Variables and files whose values the caller has to give."""
    left_out: list[str] = field(default_factory=list)

    def name_config_map(self, name: str, scratch: ScratchNamespace, *, optional: bool) -> str:
        """The name of a recorded ConfigMap in the namespace."""
        found = scratch.config_maps.get(name)
        if found is None and not optional:
            self.problems.append(f"the data of the ConfigMap {name} is not stored")
        return found or f"absent-{secret_key(name)}"


def secret_key(name: str) -> str:
    """The key of a given value in the Secret: keys allow fewer characters than paths."""
    return f"v-{blake2b(name.encode(errors='surrogateescape'), digest_size=16).hexdigest()}"
