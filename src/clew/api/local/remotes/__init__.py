"""Exchange executions with remotes: push, pull, bundles, and the documents that describe them.

It decides what is sent and what is accepted; `clew.store.remotes` reads and writes the bytes.
Imported by the local and the remote project, `server` and `cli`.
"""
