"""Tasks as Pods on a cluster, with their artifacts in an object store.

    pod_backend       the tasks of one run, for `runner.run_loop`
    pod_attempt       one attempt: puts its plan into the store, starts its Pod, reads its result
    task_pod_builder  the Pod of a task, from its component and platform settings, without IO
    execution_events  what is recorded about an attempt, without IO
    witnessed_processes  the processes of an attempt and their files, from its trace, without IO
    conversion_process  converts a trace in a process with little memory and time
    pod_locators      the places of these files, without IO
    attempt_content   what of an attempt is kept in the project's store
    result_watch      notices results before Kubernetes says that their Pods have ended
    reuse             whether an earlier task in an image takes the place of one, wherever it ran
    volume_tasks      tasks that create and delete claims
    task_documents    the documents that an attempt and its Pod exchange through the store
    artifact_store    files in a bucket
    data_mover        the program of the helper's container in each Pod
    task_tracer       gives the tracer to a task, and stores its trace
    task_outputs      the files that a task left, which may lead anywhere
    component_main    the program that runs a Python component in the image of its task

Talks to Kubernetes only through `clew.kube.tasks`. Imported by `runs`; the programs run in Pods.
"""
