"""Routes that only the `clew` command calls, when CLEW_SERVER is set.

They answer what depends on paths of the client's disk, and nothing else:

    queries         targets that may be paths of the client; checkouts; what recreating a file needs
    content         content that the client writes: a version, an export, the outputs of a repeat
    rerun_commands  commands that run programs again, with files that the client sent

They are not in the OpenAPI document, and need a client of the same version. Everything else is in
the documented routes beside this package. Imported by `server.app`.
"""
