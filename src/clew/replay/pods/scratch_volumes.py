"""The volumes of a Pod in a scratch namespace: fresh claims, recorded ConfigMaps, given secrets.

A volume of another kind leads to the node or to a server, and is refused where the whole spec is.
"""

from collections.abc import Sequence

import msgspec

from clew.replay.pods.pod_spec import (
    ClaimSource,
    EmptyDirectory,
    Item,
    Projection,
    Projections,
    SecretFiles,
    Volume,
)
from clew.replay.pods.scratch_namespace import Findings, ScratchNamespace, secret_key

_TOKENS = "kube-api-access-"


class VolumeRewriter:
    def __init__(self, scratch: ScratchNamespace, findings: Findings) -> None:
        self._scratch = scratch
        self._findings = findings

    def rewrite(self, volume: Volume, paths: Sequence[str]) -> Volume | None:
        """None: it is left out with its mounts. `paths`: where containers have it."""
        made = Volume(name=volume.name)
        if volume.persistent_volume_claim is not None:
            return msgspec.structs.replace(
                made, persistent_volume_claim=self._claim(volume.persistent_volume_claim)
            )
        if volume.config_map is not None:
            files = volume.config_map
            name = self._config_map(files.name, optional=files.optional)
            return msgspec.structs.replace(
                made, config_map=msgspec.structs.replace(files, name=name)
            )
        if volume.secret is not None:
            given = self._secret_files(volume.secret, volume.secret.secret_name, paths)
            if given is not None:
                given = msgspec.structs.replace(given, secret_name=self._scratch.secret)
                return msgspec.structs.replace(made, secret=given)
        if volume.projected is not None:
            return self._projected(volume, volume.projected, paths)
        if volume.downward_api is not None:
            return msgspec.structs.replace(made, downward_api=volume.downward_api)
        return msgspec.structs.replace(made, empty_dir=volume.empty_dir or EmptyDirectory())

    def _claim(self, claim: ClaimSource) -> ClaimSource:
        fresh = self._scratch.claims.get(claim.claim_name)
        if fresh is None:
            self._findings.problems.append(f"there is no fresh claim for {claim.claim_name}")
        return ClaimSource(claim_name=fresh or claim.claim_name, read_only=claim.read_only)

    def _projected(
        self, volume: Volume, projected: Projections, paths: Sequence[str]
    ) -> Volume | None:
        found = [self._projection(one, paths) for one in projected.sources]
        sources = tuple(one for one in found if one is not None)
        if not sources or volume.name.startswith(_TOKENS):
            self._findings.left_out.append("the token of its service account")
            return None
        return msgspec.structs.replace(
            Volume(name=volume.name), projected=msgspec.structs.replace(projected, sources=sources)
        )

    def _projection(self, source: Projection, paths: Sequence[str]) -> Projection | None:
        if source.config_map is not None:
            if source.config_map.name == "kube-root-ca.crt":
                return None
            name = self._config_map(source.config_map.name, optional=source.config_map.optional)
            return Projection(config_map=msgspec.structs.replace(source.config_map, name=name))
        if source.secret is not None:
            given = self._secret_files(source.secret, source.secret.name, paths)
            if given is None:
                return None
            return Projection(secret=msgspec.structs.replace(given, name=self._scratch.secret))
        return Projection(downward_api=source.downward_api) if source.downward_api else None

    def _config_map(self, name: str, *, optional: bool) -> str:
        return self._findings.name_config_map(name, self._scratch, optional=optional)

    def _secret_files(
        self, files: SecretFiles, name: str, paths: Sequence[str]
    ) -> SecretFiles | None:
        """The files that the caller gave below the places where the Secret was mounted."""
        items = {}
        for given in sorted(self._scratch.given):
            for path in paths:
                inside = given.removeprefix(path.rstrip("/") + "/")
                if inside != given and ".." not in inside.split("/"):
                    items[inside] = Item(key=secret_key(given), path=inside)
        wanted = {item.path for item in files.items}
        if (not items or wanted - set(items)) and not files.optional:
            where = paths[0] if paths else name
            names = sorted(wanted) or ["FILE"]
            self._findings.missing.extend(f"{where.rstrip('/')}/{one}" for one in names)
        if not items:
            return None
        return SecretFiles(items=tuple(items.values()), default_mode=files.default_mode)
