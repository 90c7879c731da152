"""The command line: one file a command. Each parses its words, calls `clew.api`, and prints.

No SQL, no store and no rule of the record belongs here; what a command decides, the Python
interface can decide too. Nobody imports this package: it is the top.

`main` is the group and the only module that turns an exception into an exit status; `output`
the only one that writes to stdout; `lineage` draws a trace as a tree, as Graphviz text and as
a page.
"""
