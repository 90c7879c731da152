"""Tasks that run as Pods: what to create, what became of it, and the thread that follows it.

    task_pod       the Pod of one attempt of a task, as typed values
    manifest       its manifest, without IO
    outcome        how a Pod ended, from its status, without IO
    placement_reason  why the latency-aware scheduler chose its node, without IO
    obstacles      why a Pod does not start, and whether to give it up, without IO
    pod_runner     starts, follows, stops and removes the Pods of one run
    pod_creation   creates one Pod, also where a quota leaves no room yet
    pod_follower   one Pod of a run, from its creation to its end
    pod_watch      what the API server says about the Pods of one run
    pod_log        the output of a task, complete and once
    volume_claims  creates and deletes the volumes of a pipeline

Knows nothing about pipelines: a task is an image, a command and settings. Imported by `pipelines`.
"""
