"""Kubeflow Pipelines: parse the compiled IR, decide, and run tasks through `run` or as Pods.

    spec    the compiled pipeline as typed values
    engine  which tasks are ready, skipped, retried or finished, without IO
    tasks   one attempt of a task on this machine: forked worker, process or container
    pods    one attempt of a task as a Pod, with its artifacts in an object store
    runner  performs one run: carries out the engine's decisions, and records them
    run_directory   names of the directory of a run, and of what is in it
    runs    all runs of a project: queue, leases, lists

Imported by the packages above.
"""
