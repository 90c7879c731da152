"""Perform the queued runs.

`worker_pool` starts worker processes. Each `worker` claims one run at a time and runs it as
`clew pipeline run` would. Workers share nothing but the database, so those of several servers
share the work. `schedule_loop` queues the runs of schedules that are due. Imported by
`server.listener`.
"""
