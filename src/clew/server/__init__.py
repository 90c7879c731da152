"""The HTTP server of a project: Kubeflow Pipelines' API, our own API, and the proxy.

    app          puts the routes and the middleware together
    listener     opens the sockets, starts the workers, and ends them in order
    http         limits, timeouts, error documents, access log
    identity     who makes a request: tokens, sessions, what a caller may read
    kfp          routes of Kubeflow Pipelines' API
    kubeflow     routes of Kubeflow's web apps
    v1           routes of our own API
    catalogue    the tables of experiments, pipelines, schedules and more
    server_state, workload_source   what the routes share
    web_app      the page of the web app and its files
    run_preparation, ingest_transfers   check requests for runs; limit what arrives
    run_workers  processes that claim queued runs and perform them
    repeats      performs queued repeats, each in a process (`rerun_process`, `rerun_worker`)
    logs         logs of any size, by lines; polling_feed: one reader for all who follow one
    metrics, storage_meter, log_format   what operators see
    proxy        the way to notebooks, TensorBoards and volume viewers
    parsers      parsers of what clients send
    samples      the sample pipelines

Routes parse, call `api` and answer; they contain no rules. Imported by commands of `cli`.
"""
