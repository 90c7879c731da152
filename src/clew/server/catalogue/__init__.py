"""What the server stores about experiments, pipelines, versions, schedules, proxy and sessions.

One module per kind, with its SQL. Every function takes the graph of the project and is one
transaction. `list_pages` answers a page of any list, by the fields in `list_fields`. Runs are in
`clew.pipelines.runs`. Never contains HTTP. Imported by the routes and by `run_workers`.
"""
