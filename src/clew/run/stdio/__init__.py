"""The standard streams of a recorded command: captured on their way, in files, pipes or a terminal.

Never interprets what is printed. Imported by `run`, `replay` and `pipelines`.
"""
