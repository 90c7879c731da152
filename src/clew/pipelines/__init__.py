"""Kubeflow Pipelines: parse the compiled IR, decide, and run tasks through `run`.

    spec    the compiled pipeline as typed values
    engine  which tasks are ready, skipped, retried or finished, without IO
    tasks   one attempt of a task: forked worker, process or container
    runner  performs one run: carries out the engine's decisions, and records them
    runs    all runs of a project: queue, leases, lists

Another kind of runner, such as Pods, replaces `tasks` alone. Imported by the packages above.
"""
