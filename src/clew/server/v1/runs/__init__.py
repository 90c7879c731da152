"""Routes about pipeline runs: queue, follow, cancel and resume them, and read their logs.

The work is done by `clew.pipelines.runs`. Imported by `v1.routes`.
"""
