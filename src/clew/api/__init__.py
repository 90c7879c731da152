"""The Python interface, on which the command line and the server are built.

    project, pipelines   the protocols `Project` and `Pipelines`: the documented interface
    executions, repeats  what they return, with the documents of `clew.documents`
    open_project         `clew.open` and `clew.init`
    local                the implementation for a local directory
    remote               the implementation for a server (CLEW_SERVER)
    delivery             sends executions that were recorded here to a server
    reproduction         makes a file of a cluster again by running Pods
    pipeline_artifacts   names of runs, tasks and artifacts, and the files of artifacts
    metric_collection    parameters and metrics of many executions and runs
    pods                 the interface of `project.pods`: what Pods made, made again
    tensorboard_events   the scalars in an event file of TensorBoard
    parameter_types      types and defaults of parameters that both protocols share
    project_context      the open state of a local project, which its modules take

It contains no SQL and no parsing of the command line. Only `server`, `cli`, `agents` and Python
programs import it, never the packages below. Modules load on first use: a machine without a
compiler can do everything but `exec`.
"""
