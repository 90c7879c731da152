"""Names of values for the record: the same value has the same name.

They are hashes with a key of the project, so nobody without it can check a guess of a value, such
as of a password that a variable holds.
"""

import hashlib

_SIZE = 16


class Fingerprints:
    """Made without a key, it is only good for comparisons within this process."""

    def __init__(self) -> None:
        self._key = b""

    def set_key(self, key: str) -> None:
        self._key = bytes.fromhex(key)

    def make(self, data: bytes) -> str:
        return hashlib.blake2b(data, key=self._key, digest_size=_SIZE).hexdigest()


fingerprints = Fingerprints()
"""Those of this kernel."""
