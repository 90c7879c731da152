"""Checkouts: the files of an execution in a directory where a user changes them, and commits of it.

Never runs the command; `api` does. Imported by `api`.
"""
