"""Routes that only the `clew` command calls, when CLEW_SERVER is set.

They answer what depends on paths of the client's disk, or takes secrets that no queue may store:

    queries         targets that may be paths of the client; checkouts; what recreating a file needs
    content         the content of such a target
    rerun_commands  commands that run programs again, with files and secrets of the client

They are not in the OpenAPI document, and need a client of the same version. Everything else is in
the documented routes beside this package. Imported by `server.app`.
"""
