"""Routes that only the `clew` command calls, when CLEW_SERVER is set.

They answer what depends on paths of the client's disk. Everything else is in the documented
routes beside this package.
"""
