"""All pipeline runs of a project: queued, leased, performed, listed.

    cluster_options  where on a cluster tasks run
    run_queue        requests for runs, queued in the database and claimed by workers
    lease_watcher    which claims have expired; `lease_holder` renews one
    perform_request  performs a claimed request; `perform` runs, resumes and cancels here
    run_states       the states of a run, and which operations they allow
    project_interface  what this package needs of an open project
    run_list         all runs and their states, from the requests and the record
    pipeline_specs   the texts of requested pipelines

The command line, the routes and the workers of a server are thin layers over this package, so all
of them show the same. Never contains HTTP. Imported by `api` and `server`.
"""
