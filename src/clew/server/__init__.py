"""The HTTP server of a project: Kubeflow Pipelines' API, our own API, and the proxy.

    app          puts the routes and the middleware together
    listener     opens the sockets, starts the workers, and ends them in order
    http         identity, limits, timeouts, error documents, access log
    kfp          routes of Kubeflow Pipelines' API
    kubeflow     routes of Kubeflow's web apps
    v1           routes of our own API
    catalogue    the tables of experiments, pipelines, schedules and more
    run_workers  processes that claim queued runs and perform them
    repeats      performs queued repeats, each in a process (`rerun_worker`)
    logs         logs of any size, by lines
    proxy        the way to notebooks, TensorBoards and volume viewers
    parsers      parsers of what clients send
    samples      the sample pipelines

Routes parse, call `api` and answer; they contain no rules. Imported by commands of `cli`.
"""
