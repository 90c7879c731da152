"""The cluster as the server sees it: notebooks, TensorBoards and volumes for the web app.

    resource_backend  lists, creates, changes and deletes resources; Pods, logs, features
    rest_client       plain JSON to and from the Kubernetes API
    api_errors        answers of the Kubernetes API as errors with plain sentences
    log_positions     positions in logs
    version_watch     a number that changes when a resource changes

`ResourceBackend` satisfies the interface `workloads.backend.Backend`. The operator has a client of
its own (`kube.client`): it is asynchronous and writes other fields.
"""
