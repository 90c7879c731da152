"""Logs of any size, by lines: where the bytes of a log are, where its lines begin, and searching.

`log_source` finds the bytes, `line_index` divides them into blocks of lines, and `log_reader` keeps
the indexes of the logs that are read now. Never contains HTTP. Imported by the routes of logs.
"""
