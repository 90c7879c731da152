"""The index of activities: one row for each execution and pipeline run, for lists of many.

`index` keeps it up to date, with rows from `execution_rows` and `run_rows`; `recorded_results`
reads metrics, and what failed executions printed last. `conditions`, `sort_order` and `groups` turn
a query into SQL, and `selection` performs it. The index is made from other tables only, when a
list is requested. Imported by routes and `server.app`.
"""
