"""Say in a pipeline near whom a task is to run.

    import clew

    answer = predict(model=train.output)
    clew.place(answer, kind="Predict", near="HOME-EDGE")

It sets the labels that the latency-aware scheduler reads, in the compiled pipeline. The file needs
the `kfp` SDK alone: the package `clew-kfp` has it as `clew_kfp` for who writes pipelines without
Clew. So it imports nothing of Clew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask  # type: ignore[import-untyped]

KINDS = ("Predict", "Predicting", "Serving")


def place(
    task: PipelineTask,
    *,
    near: str | Mapping[str, float],
    kind: str = "Predict",
    max_ms: float | None = None,
) -> PipelineTask:
    """Run a task on the node with the lowest latency to its clients, and return the task.

    `near`: the location of the clients, or several with the share of each: `{"HOME": 0.7, "LAB":
    0.3}`. `kind`: what the task does, one of `KINDS`. `max_ms`: it must not run where a location is
    farther away than this many milliseconds.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if not near:
        raise ValueError("near must name a location")
    labels, annotations = {"typeOfComponent": kind}, {}
    if isinstance(near, str):
        labels["OurLocation"] = near
    else:
        shares = ",".join(f"{name}={share:g}" for name, share in near.items())
        annotations["latency.clew.dev/locations"] = shares
    if max_ms is not None:
        annotations["latency.clew.dev/max-ms"] = f"{max_ms:g}"
    platform: dict[str, Any] = task.platform_config.setdefault("kubernetes", {})
    metadata: dict[str, Any] = platform.setdefault("podMetadata", {})
    metadata.setdefault("labels", {}).update(labels)
    if annotations:
        metadata.setdefault("annotations", {}).update(annotations)
    return task
