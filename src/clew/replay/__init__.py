"""Repeating recorded executions: in a sandbox, compared with the original, reused where possible.

`sandbox` runs a command on recorded files, `repeat` plans and runs a repeat, `compare` and
`explain` find differences and their causes, `reuse` skips work whose inputs did not change,
`checkout` and `export` lay the files out for users and for other machines. Decisions are pure
functions over the records of `prov`; recording goes through `run`. Contains no commands, routes or
SQL. Imported by `pipelines`, `api`, `server` and `cli`.
"""
