"""What the server keeps about experiments, pipelines and versions, runs and schedules.

One module per kind, with its SQL. Every function takes the graph of the project and is one
transaction. `list_pages` answers a page of any list, by the fields in `list_fields`. How a run
went is in the graph: the run has the same uid here and there. Never contains HTTP. Imported by
the routes and by `run_workers`.
"""
