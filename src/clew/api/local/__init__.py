"""The project on this machine: `Project` over the graph and the store.

Imported by `clew.api`, `server` and `cli`; never by the packages below `api`.
"""
