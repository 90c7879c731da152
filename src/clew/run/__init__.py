"""Doing work: what a runner is, and the local one.

Here a command is started, watched by a witness, its content stored, its events folded.
Nothing here asks questions of the graph, prints, or knows Kubernetes. The command line and
the Python API may import it.
"""

from __future__ import annotations

from clew.run.executing import Outcome, execute

__all__ = ["Outcome", "execute"]
