"""What the server stores: experiments, pipelines, schedules, repeats, access tokens and more.

One module per kind, with its SQL. Every function takes the graph of the project and is one
transaction. `list_pages` answers a page of any list, by the fields in `list_fields`. Runs are in
`clew.pipelines.runs`. Never contains HTTP. Imported by the rest of `server`.
"""
