"""The project in a local directory: one module for each group of methods, on graph and store.

The modules take a `ProjectState`; only `project` imports them all. Imported by `clew.api`, `server`
and `cli`; never by the packages below `api`.
"""
