"""Drawings of a lineage: `tree` for a terminal, `dot` for Graphviz, `page` for a browser.

Pure functions of the `trace` document in `docs/reference/json.md`; `diagram_model` has what they
share. Imported by the `trace` command and `web_page`.
"""
