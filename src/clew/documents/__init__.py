"""The JSON documents, each defined once: what `--json` prints, what the REST API answers with and
describes in OpenAPI, what the Python interface returns, and what docs/reference/json.md explains.

    ids       the ids in them
    document  the base class, and times
    …         one module per subject; import only those that are needed

It contains frozen msgspec structs: no queries, no IO, nothing that formats text for people. Every
package may import it; it imports no other.
"""
