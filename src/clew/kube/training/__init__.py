"""Training jobs: what the operator does for a TFJob or PyTorchJob, decided without IO.

    job_spec       a job as its user wrote it, with upstream's defaults
    replicas       the Pods that there are, by type and number
    tensorflow, pytorch  the variables by which the replicas find each other
    manifests      the Pod and the Service of a replica
    pod_groups     gang scheduling
    autoscalers    the autoscaler of an elastic job
    failures       which failures end a job, which Pods start again, and when
    outcome        whether a job has succeeded, or can no longer
    conditions     the conditions of a status, and how they change
    job_status     the status: conditions, counts, and why a replica does not run
    lifecycle      from a job and its Pods to what is created, deleted and written
    job_events     the events of a job
    model          the input and the output of that decision

Never calls the API server: `controller` carries out what is decided here. Imported by `controller`
and by the rest of `kube`.
"""
