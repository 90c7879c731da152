"""Which software package owns a file: deb, rpm, conda and PyPI packages, and builds of Python.

Contains one reader per package manager, the index from paths to owners, and its cache. Never
contains anything about traces, executions or the record. Imported by `witness` and above.
"""
