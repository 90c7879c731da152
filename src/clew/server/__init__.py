"""The HTTP server of a project: Kubeflow Pipelines' API, our own API, and the proxy.

    app          puts the routes and the middleware together
    http         identity, limits, timeouts, error documents, access log
    kfp, v1      the routes: Kubeflow's API and our own
    catalogue    the tables of experiments, pipelines and schedules
    run_workers  processes that claim queued runs and perform them
    proxy        the way to notebooks, TensorBoards and volume viewers
    parsing      parsers of what clients send

Routes parse, call `api` and answer; they contain no rules. Imported by `clew server` alone.
"""
