"""Perform the queued repeats.

`repeat_pool` claims repeats and bounds how many are in progress; `repeat_process` performs one in a
`rerun_worker`, the process that performs the repeats of `clew repeat` through a server, too. The
queue is `catalogue.repeat_requests`. Imported by `server.listener`.
"""
