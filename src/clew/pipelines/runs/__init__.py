"""All pipeline runs of a project: requested, queued, performed, finished.

    run_queue       requests for runs, queued in the database and claimed by workers
    leases          when a worker's claim has expired
    pipeline_specs  the texts of requested pipelines
    run_list        the runs and their states, from the requests and the record

The command line, the routes and the workers of a server are thin layers over this package, so all
of them show the same. Never contains HTTP. Imported by `api` and `server`.
"""
