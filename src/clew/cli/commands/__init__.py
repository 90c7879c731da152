"""One file per command; the file is named as the user types the command.

A command parses its arguments, calls `clew.api` and prints. It contains no SQL, no Kubernetes
calls and no rules. `clew.cli.main` imports a command when it is first used. Some commands share
what they print: they import it from each other.
"""
