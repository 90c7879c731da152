"""A scratch namespace, in which Pods run once and from which everything is removed.

    manifests      the objects of a scratch space, without IO
    scratch_space  creates them, keeps them alive, removes them, also those of a killed command
    scratch_client the Kubernetes API, with watches of one object and WebSockets
    pod_run        runs a Pod to its end, and says why it did not end well
    pod_exec       runs a program in a Pod, with input and output

Knows nothing about records: the Pods arrive as manifests. Imported by `api` and
the operator, which removes what killed commands left.
"""
