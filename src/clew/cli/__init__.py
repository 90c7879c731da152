"""The command line. A command parses its arguments, calls `clew.api`, and prints.

`commands` has one file per command. `main` is the only module that turns an exception into an exit
status, and `output` the only one that writes to stdout. `lineage` draws a trace as a tree, as
Graphviz text or as an HTML page. Contains no SQL and no rules: what a command can do, the Python
interface can do too. Imported by nothing.
"""
