"""The access tokens by which a notebook or a viewer recognises the server, culler and gateway.

A NetworkPolicy keeps everyone else away from these Pods, but only on a cluster that enforces it. So
our images also ask for a token. It is derived from one key, which the operator and the server share
in a Secret of their own namespace, and from the resource's kind, namespace, name and uid: no other
Secret is needed, and a resource in one namespace never gives away the token of another. The Pod is
given only the digest of the token, so reading the Pod does not reveal the token.
"""

import hashlib
import hmac

from clew.kube.objects import Key, Object, name_of, namespace_of, uid_of

HEADER = "X-Clew-Access"
"""Carries the token. Not `Authorization`: an image may use that itself, and Jupyter would turn its
protection against cross-site requests off."""
VARIABLE = "CLEW_ACCESS_SHA256"
"""Tells a notebook's container the digest of its token."""


def derive_token(key: str, resource: Key, uid: str) -> str:
    text = "\0".join((*resource, uid))
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def headers_for(resource: Object, key: str) -> dict[str, str]:
    """The headers of a request to the Pod of a resource; empty without a key."""
    if not key:
        return {}
    owner = Key(resource["kind"], namespace_of(resource), name_of(resource))
    return {HEADER: derive_token(key, owner, uid_of(resource))}


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(given: str, expected_digest: str) -> bool:
    return hmac.compare_digest(token_digest(given), expected_digest)
