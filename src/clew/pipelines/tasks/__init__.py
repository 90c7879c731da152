"""Runs one task: a forked worker, a process or a container, with its files, volumes and packages.

Never decides which task is next (`engine`) and never writes the record of the run (`runner`).
Imported by the rest of `pipelines`, and by `api` to compile a pipeline before it is sent.
"""
