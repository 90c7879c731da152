"""Notebooks, TensorBoards and volumes, whatever runs them.

    backend             what runs them: the interface of the local machine and of a cluster
    forms               the administrator's form defaults, and a filled-in form to resources
    notebooks, tensorboards, volumes   their state in plain words, and their list entries
    resource_lists      all of them, and what forms offer
    changes             create, edit and delete resources
    log_stream          the log of a container
    details             everything about one resource
    quotas, events      how much of a quota is used; events about resources
    active_workloads    what runs, for the first page
    annotations         annotations that the web app sets on resources
    programs            what a back end needs and can install: JupyterLab, TensorBoard
    local               a back end with child processes as notebooks and directories as volumes

Resources have the shape of Kubernetes in both back ends: the same custom resources as plain JSON.
So the server has one code path, and what works on a laptop works on a cluster. Knows nothing about
executions, the graph or HTTP routes. Imported by `server` and `cli`. The cluster's back end is
`kube.backend`, which satisfies `Backend` without importing it.
"""
