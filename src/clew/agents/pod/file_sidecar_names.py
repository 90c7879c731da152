"""Names that the webhook, the sidecar and the wrapper of commands share."""

from typing import Final

ANNOTATION: Final = "clew.dev/file-witness"
"""Of a Pod: `fuse` or `fanotify` for the node agent, which else chooses by the volume."""
SIDECAR: Final = "sidecar"
"""The value that asks for the witness in the Pod."""

CONTAINER: Final = "clew-files"
VOLUME: Final = "clew-files"
STATE_VOLUME: Final = "clew-files-state"
ACCESS_VOLUME: Final = "clew-files-access"
POLICY_VOLUME: Final = "clew-files-policy"
OWN_NAMES: Final = frozenset({CONTAINER, VOLUME, STATE_VOLUME, ACCESS_VOLUME, POLICY_VOLUME})

DIRECTORY: Final = "/run/clew"
WRAPPER: Final = f"{DIRECTORY}/clew-mount"
SOCKET: Final = f"{DIRECTORY}/socket"

DEVICE: Final = "clew.dev/fuse"
"""The extended resource of the device plugin."""
SECRET: Final = "clew-agents"  # noqa: S105
"""Has the address of the server and a token, in the namespace of the Pod."""
POLICY: Final = "clew-files"
"""A ConfigMap in the namespace of the Pod whose `policy.toml` says what is watched and stored."""
