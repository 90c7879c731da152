"""The server's own tables: pipelines, repeats, access tokens and more.

    pipelines     pipelines with their versions, schedules and experiments
    activities    executions and runs in one table, with filters and sorting
    list_pages    answers a page of any list, by the fields in `list_fields`
    …             one module per kind, with its SQL

Every function takes the graph of the project and is one transaction. Runs are in
`clew.pipelines.runs`. Never contains HTTP. Imported by the rest of `server`.
"""
