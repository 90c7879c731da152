"""Why two executions differ: the process that diverged first, and the cause.

A cause is a candidate until a diagnostic run that pins it confirms it. Imported by `api`.
"""
