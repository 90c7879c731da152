"""The Pod to create for a recorded one: what it ran, on fresh volumes, without a way to the host.

The recorded spec is untrusted. The result has only fields that `pod_spec` lists, and no access to
the node, to other namespaces, to the API server or to a Secret: values of secrets come from the
caller, by name. What cannot run like that is a problem with a sentence, and then no Pod is made.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.redaction import MASK
from clew.replay.pods import bucket_names
from clew.replay.pods.pod_spec import (
    Container,
    KeyReference,
    PodSpec,
    Variable,
    VariableSource,
    VariablesSource,
    Volume,
    parse_spec,
)
from clew.replay.pods.scratch_namespace import Findings, ScratchNamespace, secret_key
from clew.replay.pods.scratch_volumes import VolumeRewriter

BASELINE_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
"""Those that Kubernetes' Pod Security Standard `baseline` lets a container add."""
INJECTED = re.compile(r"clew-(sidecar|redirect)|istio-(proxy|init|validation)")
"""Containers that an admission webhook added: it adds them again where they are wanted."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_GRACE_SECONDS = 5


@dataclass(frozen=True)
class ScratchPod:
    manifest: dict[str, Any]
    problems: tuple[str, ...]
    """Why it cannot run; empty if it can."""
    missing_secrets: tuple[str, ...]
    """Names of variables and paths of files that the caller has to give."""
    left_out: tuple[str, ...]
    """Parts of the recorded Pod that the scratch Pod lacks."""


def rewrite_pod(
    spec: Mapping[str, Any], scratch: ScratchNamespace, *, host: str = "", by_id: bool = False
) -> ScratchPod:
    """`host`: the recorded name of the Pod, which is its host name unless the spec has another.
    `by_id`: name images by their digest alone, as a node calls those that no registry has."""
    try:
        parsed = parse_spec(dict(spec))
    except msgspec.ValidationError as error:
        return ScratchPod({}, (f"its recorded spec is not valid: {error}",), (), ())
    rewriter = _Rewriter(scratch, by_id=by_id)
    made = rewriter.rewrite(parsed, spec, host)
    metadata = {"name": scratch.name, "labels": dict(scratch.labels)}
    return ScratchPod(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made},
        tuple(dict.fromkeys(rewriter.findings.problems)),
        tuple(dict.fromkeys(rewriter.findings.missing)),
        tuple(dict.fromkeys(rewriter.findings.left_out)),
    )


class _Rewriter:
    def __init__(self, scratch: ScratchNamespace, *, by_id: bool) -> None:
        self._scratch = scratch
        self._by_id = by_id
        self.findings = Findings()

    def rewrite(self, spec: PodSpec, raw: Mapping[str, Any], host: str) -> dict[str, Any]:
        self._refuse_host(spec, raw)
        containers = [one for one in spec.containers if not self._is_injected(one)]
        before = [one for one in spec.init_containers if not self._is_injected(one)]
        if not containers:
            self.findings.problems.append("it has no container of its own")
        paths: dict[str, list[str]] = {}
        for mount in (mount for one in (*containers, *before) for mount in one.volume_mounts):
            paths.setdefault(mount.name, []).append(mount.mount_path)
        rewriter = VolumeRewriter(self._scratch, self.findings)
        used = (one for one in spec.volumes if one.name in paths)
        volumes = [rewriter.rewrite(one, paths[one.name]) for one in used]
        kept = {one.name for one in volumes if one is not None}
        name = spec.hostname or host
        selector = {
            key: value
            for key, value in spec.node_selector.items()
            if key != "kubernetes.io/hostname"
        }
        made = msgspec.structs.replace(
            spec,
            containers=tuple(self._container(one, kept) for one in containers),
            init_containers=tuple(self._container(one, kept) for one in before),
            volumes=tuple(one for one in volumes if one is not None),
            hostname=name if _LABEL.fullmatch(name) else "",
            node_selector=selector,
            host_network=False,
            host_pid=False,
            host_ipc=False,
        )
        document: dict[str, Any] = msgspec.to_builtins(made)
        security = document.setdefault("securityContext", {})
        return {
            **document,
            "securityContext": {**security, "seccompProfile": {"type": "RuntimeDefault"}},
            "restartPolicy": "Never",
            "activeDeadlineSeconds": self._scratch.deadline,
            "terminationGracePeriodSeconds": _GRACE_SECONDS,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
        }

    def _refuse_host(self, spec: PodSpec, raw: Mapping[str, Any]) -> None:
        for what, has in (
            ("network", spec.host_network), ("processes", spec.host_pid), ("IPC", spec.host_ipc)
        ):  # fmt: skip
            if has:
                self.findings.problems.append(f"it used the {what} of the node")
        if raw.get("resourceClaims"):
            self.findings.problems.append("it used devices by resource claims")
        for name in ("affinity", "runtimeClassName"):
            if raw.get(name):
                self.findings.left_out.append(f"its {name}")
        for volume in raw.get("volumes") or ():
            kinds = set(volume) - {"name"}
            if not kinds & {one.encode_name for one in msgspec.structs.fields(Volume)}:
                kind = ", ".join(sorted(kinds))[:100] or "volume without a kind"
                self.findings.problems.append(
                    f"it mounts {volume.get('name')!s:.100}, which is a {kind}"
                )

    def _is_injected(self, container: Container) -> bool:
        if INJECTED.fullmatch(container.name):
            self.findings.left_out.append(f"the container {container.name}, which was injected")
            return True
        return False

    # -- containers

    def _container(self, container: Container, volumes: set[str]) -> Container:
        security = container.security_context
        added = set(security.capabilities.add) if security and security.capabilities else set()
        if security is not None:
            if security.privileged:
                self.findings.problems.append(f"its container {container.name} is privileged")
            if security.proc_mount not in (None, "Default"):
                self.findings.problems.append(
                    f"its container {container.name} sees /proc of the node"
                )
            security = msgspec.structs.replace(
                security, privileged=None, proc_mount=None, allow_privilege_escalation=False
            )
        for name in sorted(added - BASELINE_CAPABILITIES):
            self.findings.problems.append(
                f"its container {container.name} has the capability {name}"
            )
        self._refuse_masked(container)
        from_sources = [self._variables(one) for one in container.env_from]
        return msgspec.structs.replace(
            container,
            image=self._image(container),
            image_pull_policy="Never" if self._by_id else "IfNotPresent",
            command=tuple(map(self._text, container.command)),
            args=tuple(map(self._text, container.args)),
            env=(
                *(self._variable(one) for one in container.env),
                *self._given_variables(container),
            ),
            env_from=tuple(one for one in from_sources if one is not None),
            volume_mounts=tuple(one for one in container.volume_mounts if one.name in volumes),
            security_context=security,
            restart_policy="Always" if container.restart_policy == "Always" else None,
        )

    def _image(self, container: Container) -> str:
        """By its digest: a tag may name another image now."""
        digest = self._scratch.images.get(container.name, "")
        if not (_DIGEST.fullmatch(digest) and _IMAGE.fullmatch(container.image)):
            self.findings.problems.append(
                f"the digest of the image of {container.name} is not recorded"
            )
            return ""
        if self._by_id or container.image.startswith("sha256:"):
            return digest
        repository = container.image.partition("@")[0]
        head, slash, last = repository.rpartition("/")
        return f"{head}{slash}{last.partition(':')[0]}@{digest}"

    def _refuse_masked(self, container: Container) -> None:
        if any(MASK in word for word in (*container.command, *container.args)):
            self.findings.problems.append(
                f"a secret was masked in the arguments of {container.name}: only values of "
                "variables and files can be given"
            )

    def _text(self, text: str) -> str:
        return bucket_names.replace(text, self._scratch.buckets)

    # -- variables

    def _variable(self, variable: Variable) -> Variable:
        source = variable.value_from  # counts before the value: beside an empty one it is allowed
        if source is None:
            if not isinstance(variable.value, str):
                return variable
            if MASK in variable.value:
                return self._given(variable.name) or variable
            return msgspec.structs.replace(variable, value=self._text(variable.value))
        if source.secret_key_ref is not None:
            optional = source.secret_key_ref.optional
            return self._given(variable.name, optional=optional) or Variable(
                name=variable.name, value=""
            )
        if (reference := source.config_map_key_ref) is not None:
            name = self.findings.name_config_map(
                reference.name, self._scratch, optional=reference.optional
            )
            found = msgspec.structs.replace(reference, name=name)
            return Variable(name=variable.name, value_from=VariableSource(config_map_key_ref=found))
        return Variable(name=variable.name, value_from=source)

    def _given(self, name: str, *, optional: bool = False) -> Variable | None:
        """The variable with the caller's value."""
        if name not in self._scratch.given:
            if not optional:
                self.findings.missing.append(name)
            return None
        key = KeyReference(name=self._scratch.secret, key=secret_key(name))
        return Variable(name=name, value_from=VariableSource(secret_key_ref=key))

    def _variables(self, source: VariablesSource) -> VariablesSource | None:
        """A Secret's variables are not known by name: `_given_variables` has the caller's."""
        if (reference := source.config_map_ref) is None:
            return None
        name = self.findings.name_config_map(
            reference.name, self._scratch, optional=reference.optional
        )
        return msgspec.structs.replace(
            source, config_map_ref=msgspec.structs.replace(reference, name=name), secret_ref=None
        )

    def _given_variables(self, container: Container) -> Iterator[Variable]:
        """Every given variable, for a container that has all variables of a Secret."""
        sources = [one.secret_ref for one in container.env_from if one.secret_ref is not None]
        if not sources:
            return
        own = {variable.name for variable in container.env}
        names = sorted(n for n in self._scratch.given if not n.startswith("/") and n not in own)
        if not names and not all(one.optional for one in sources):
            self.findings.missing.append(f"the variables of the Secret {sources[0].name}")
        for name in names:
            if (variable := self._given(name)) is not None:
                yield variable
