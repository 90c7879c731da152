"""Hypothesis strategies for bodies that clients may send."""

from typing import Any

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
    | st.sampled_from(["1Gi", "500m", "none", "{none}", "{empty}", "a", "/data", "pvc://a/b", "0"])
)
KEYS = st.sampled_from(
    [
        *("name", "metadata", "spec", "mount", "newPvc", "existingSource", "claimName", "num"),
        *("persistentVolumeClaim", "vendor", "accessModes", "resources", "requests", "storage"),
        *("generateName", "labels", "annotations", "storageClassName", "template", "containers"),
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner),
    max_leaves=8,
)


def bodies(*fields: str) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies with some of these fields, whose values are anything."""
    return st.dictionaries(st.sampled_from(fields), VALUES, max_size=5)
