"""Repeating an execution: the plan, the runner that carries it out, and its report.

Also decides which secrets and credential files a repeat gets, and which executions recreate a
file. Never compares results (`compare`) and never skips work (`reuse`). Imported by the rest of
`replay` and the packages above.
"""
