"""The HTTP face of a project: the stock Kubeflow Pipelines client's API, and our own.

`service` is what routes are given: projects, one for each request at a time. `app` puts the
routes together behind `identity`; `catalogue` keeps what was asked for (experiments, pipelines,
runs, schedules), `running` does it. `kfp` speaks Kubeflow's API, `v1` our own. Routes parse, call
and answer; what a thing means is known below, in `api`. Only the command line starts it.
"""
