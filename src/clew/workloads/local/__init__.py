"""Notebooks, TensorBoards and viewers as child processes, and volumes as directories.

    local_backend       the back end: resources, Pods that stand for processes, logs
    resource_files      resources and events as JSON files
    validation          which resources this machine accepts
    volume_directories  where the content of a volume is, and that it stays there
    processes           what to start, and the processes themselves
    pods                Pods that stand for processes
    culler              stops what is idle
    idle_limit          after how long an idle one is stopped
    installer           finds and installs JupyterLab and TensorBoard
    server_lock         one server at a time runs them, and where it is

Each process accepts only requests with an access token that this server alone knows: other users of
the machine can connect to its port, and get nothing. The supervisor plays the part of the operator
and of Kubernetes, and writes the same conditions and events.
"""
