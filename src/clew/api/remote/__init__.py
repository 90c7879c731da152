"""A project that a server serves: asked over HTTP, and sent what is recorded here.

    asking      one server: requests, and its errors as ours
    waiting     which executions are not there yet
    sending     an execution, on its way there
    passing     content on its way there, or from there
    places      what words typed here mean
    fetching    bytes and folders from there, and work done there
    checkouts   folders here, of executions there
    recreating  a file made again there, and put here
    sharing     executions between there and a remote
    project     the same methods as of a project in a folder
    pipelines   and as of its pipelines

Only the standard library speaks HTTP here, and nothing is loaded unless CLEW_SERVER is set.
"""
