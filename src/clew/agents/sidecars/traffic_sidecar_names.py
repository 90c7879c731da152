"""Names that the sidecar, the webhook and the reader of its log share."""

from typing import Final

LABEL: Final = "clew.dev/sidecar"
"""Of a namespace or a Pod: `true` selects it, `false` at a Pod excludes it."""
STORES: Final = "clew.dev/s3-hosts"
"""The annotation of a Pod with the hosts of object stores that may have the bucket before them."""
TLS_STORES: Final = "clew.dev/s3-tls-hosts"
"""The annotation with the hosts to which the sidecar opens TLS."""
CERTIFICATES: Final = "clew.dev/s3-ca"
"""The annotation with the name of a ConfigMap, whose `ca.crt` has the authorities of these."""

CONTAINER: Final = "clew-sidecar"
REDIRECT: Final = "clew-redirect"
LOG_VOLUME: Final = "clew-sidecar-log"
CA_VOLUME: Final = "clew-sidecar-ca"
OWN_NAMES: Final = frozenset({CONTAINER, REDIRECT, LOG_VOLUME, CA_VOLUME})

LOG_DIRECTORY: Final = "/var/log/clew"
LOG: Final = "access.log"
"""Rotated to `access.log.1`, `access.log.2` and so on: a larger number is newer."""
CONFIRMED: Final = "confirmed"
"""What of the log is safe: the inode of the newest file that was read, and how much of it."""
DROPPED: Final = "dropped"
"""How many files of the log the sidecar deleted because nothing read them."""

USER: Final = 19733
"""The user and the group of Envoy. Connections of a process with both are not redirected."""
