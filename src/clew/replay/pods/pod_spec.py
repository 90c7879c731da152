"""The parts of a recorded Pod spec that a Pod in the scratch namespace keeps, and those that make
it impossible to run.

A record is untrusted, so this is a list of what is allowed, not of what is forbidden: a field that
is not here does not reach the cluster. The names are those of Kubernetes, in its JSON.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

Text = Annotated[str, Meta(max_length=1 << 17)]
Name = Annotated[str, Meta(max_length=253)]
Path = Annotated[str, Meta(max_length=4096)]
Id = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Mode = Annotated[int, Meta(ge=0, le=0o777)]
Quantity = Annotated[str, Meta(max_length=64)] | int | float


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class KeyReference(_Part, frozen=True):
    name: Name = ""
    key: Name = ""
    optional: bool = False


class FieldReference(_Part, frozen=True):
    field_path: Name = ""


class ResourceReference(_Part, frozen=True):
    container_name: Name = ""
    resource: Name = ""
    divisor: Quantity = "0"


class VariableSource(_Part, frozen=True):
    config_map_key_ref: KeyReference | None = None
    secret_key_ref: KeyReference | None = None
    field_ref: FieldReference | None = None
    resource_field_ref: ResourceReference | None = None


class Variable(_Part, frozen=True):
    name: Text
    value: Text | UnsetType = UNSET
    value_from: VariableSource | None = None


class ObjectReference(_Part, frozen=True):
    name: Name = ""
    optional: bool = False


class VariablesSource(_Part, frozen=True):
    prefix: Text = ""
    config_map_ref: ObjectReference | None = None
    secret_ref: ObjectReference | None = None


class Mount(_Part, frozen=True):
    name: Name
    mount_path: Path
    read_only: bool = False
    sub_path: Path = ""
    sub_path_expr: Path = ""


class Capabilities(_Part, frozen=True):
    drop: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()
    add: Annotated[tuple[Name, ...], Meta(max_length=64)] = ()


class ContainerSecurity(_Part, frozen=True):
    """`privileged` and `capabilities.add` are here to be refused."""

    run_as_user: Id | None = None
    run_as_group: Id | None = None
    run_as_non_root: bool | None = None
    read_only_root_filesystem: bool | None = None
    allow_privilege_escalation: bool | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: Name | None = None


class Resources(_Part, frozen=True):
    limits: dict[Name, Quantity] = {}
    requests: dict[Name, Quantity] = {}


class Container(_Part, frozen=True):
    name: Name
    image: Text = ""
    command: tuple[Text, ...] = ()
    args: tuple[Text, ...] = ()
    working_dir: Path = ""
    env: Annotated[tuple[Variable, ...], Meta(max_length=2000)] = ()
    env_from: Annotated[tuple[VariablesSource, ...], Meta(max_length=100)] = ()
    resources: Resources | None = None
    volume_mounts: Annotated[tuple[Mount, ...], Meta(max_length=200)] = ()
    security_context: ContainerSecurity | None = None
    restart_policy: Name | None = None
    """`Always` of an init container: it runs beside the others and ends with them."""
    image_pull_policy: Name = ""


class Item(_Part, frozen=True):
    key: Name
    path: Path
    mode: Mode | None = None


class ConfigMapFiles(_Part, frozen=True):
    name: Name = ""
    items: Annotated[tuple[Item, ...], Meta(max_length=1000)] = ()
    default_mode: Mode | None = None
    optional: bool = False


class SecretFiles(_Part, frozen=True):
    """A volume says `secretName`, a projection `name`."""

    secret_name: Name = ""
    name: Name = ""
    items: Annotated[tuple[Item, ...], Meta(max_length=1000)] = ()
    default_mode: Mode | None = None
    optional: bool = False


class FieldFile(_Part, frozen=True):
    path: Path
    field_ref: FieldReference | None = None
    resource_field_ref: ResourceReference | None = None
    mode: Mode | None = None


class FieldFiles(_Part, frozen=True):
    items: Annotated[tuple[FieldFile, ...], Meta(max_length=1000)] = ()
    default_mode: Mode | None = None


class Projection(_Part, frozen=True):
    config_map: ConfigMapFiles | None = None
    secret: SecretFiles | None = None
    # of Kubernetes: its documents have this capital letter
    downward_api: FieldFiles | None = msgspec.field(default=None, name="downwardAPI")
    service_account_token: dict[str, Any] | None = None


class Projections(_Part, frozen=True):
    sources: Annotated[tuple[Projection, ...], Meta(max_length=100)] = ()
    default_mode: Mode | None = None


class EmptyDirectory(_Part, frozen=True):
    medium: Name = ""
    size_limit: Quantity | None = None


class ClaimSource(_Part, frozen=True):
    claim_name: Name
    read_only: bool = False


class Volume(_Part, frozen=True):
    name: Name
    persistent_volume_claim: ClaimSource | None = None
    empty_dir: EmptyDirectory | None = None
    config_map: ConfigMapFiles | None = None
    secret: SecretFiles | None = None
    downward_api: FieldFiles | None = msgspec.field(default=None, name="downwardAPI")
    projected: Projections | None = None
    ephemeral: dict[str, Any] | None = None


class PodSecurity(_Part, frozen=True):
    run_as_user: Id | None = None
    run_as_group: Id | None = None
    run_as_non_root: bool | None = None
    fs_group: Id | None = None
    fs_group_change_policy: Name | None = None
    supplemental_groups: Annotated[tuple[Id, ...], Meta(max_length=100)] = ()


class HostAlias(_Part, frozen=True):
    ip: Name
    hostnames: Annotated[tuple[Name, ...], Meta(max_length=50)] = ()


class PodSpec(_Part, frozen=True):
    """`host…` are here to be refused."""

    containers: Annotated[tuple[Container, ...], Meta(min_length=1, max_length=50)]
    init_containers: Annotated[tuple[Container, ...], Meta(max_length=50)] = ()
    volumes: Annotated[tuple[Volume, ...], Meta(max_length=200)] = ()
    security_context: PodSecurity | None = None
    hostname: Name = ""
    host_aliases: Annotated[tuple[HostAlias, ...], Meta(max_length=50)] = ()
    node_selector: Annotated[dict[Name, Name], Meta(max_length=50)] = {}
    share_process_namespace: bool = False
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")


def parse_spec(spec: dict[str, Any]) -> PodSpec:
    """Raises msgspec.ValidationError where a value is not what Kubernetes would accept there."""
    return msgspec.convert(spec, PodSpec)
