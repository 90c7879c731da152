"""Our own REST API at `/api/v1`.

One module per kind of resource; those of records and of runs are in packages. Routes parse, call
`api` and `prov.queries`, and answer with the documents of `--json`, whose types are in
`clew.documents`. `routes` puts the modules together and writes the OpenAPI description. Imported
by `server.app`.
"""
