"""Kubeflow Pipelines: parse the compiled IR, decide, and run tasks through `run`.

    spec    the compiled pipeline as typed values
    engine  which tasks are ready, skipped, retried or finished, without IO
    tasks   one attempt of a task: forked worker, process or container
    runs    the loop that carries out the engine's decisions, and the record of a run

Another kind of runner, such as Pods, replaces `tasks` alone. Imported by `api`.
"""
