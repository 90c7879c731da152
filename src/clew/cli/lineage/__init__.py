"""A lineage, drawn: `tree` for a terminal, `dot` for Graphviz, `page` for a browser.

All three are pure functions of the `trace` document of `docs/reference/json.md`; nothing here
asks the graph. `shaping` turns the document into what the three have in common. Only the
`trace` command imports this package.
"""
