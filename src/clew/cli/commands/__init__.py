"""One file per command; the file is named as the user types the command.

A command parses its arguments, calls `clew.api` and prints. It contains no SQL, no Kubernetes
calls and no rules. Imported by `clew.cli.main` alone, when the command is first used.
"""
