"""The JSON documents, each defined once: what `--json` prints, what the REST API answers with and
describes in OpenAPI, what the Python interface returns, and what docs/reference/json.md explains.

    ids          the ids in them
    document     the base class, and times
    problem      the response to a request that fails
    executions   executions, their summaries and details, repeats, pushes and pulls
    comparisons  differences between executions, runs and artifacts
    files        versions of files, checkouts, what recreating a file takes
    lineage      lineage as edges, and as the boxes and arrows of a graph
    pipelines    pipelines, their runs and tasks, logs
    workloads    notebooks, TensorBoards and volumes
    project      the project as a whole: status, maintenance, notes, settings

It contains frozen msgspec structs: no queries, no IO, nothing that formats text for people. Every
package may import it; it imports no other.
"""
