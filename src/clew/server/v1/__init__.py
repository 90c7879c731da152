"""Our own API: everything that is recorded, and how work goes.

A module for each kind of thing, with its routes: they parse, call what `api` and `prov.questions`
know, and answer with the documents of `--json`, whose types are in `shapes` and `runshapes`.
`routes` puts them together, and writes down the whole in OpenAPI.
"""
