"""The file witness inside of a Pod, for clusters without privileged agents: `clew agent pod`.

    file_sidecar_names  names that the webhook, the sidecar and the wrapper of commands share
    layer_injection     adds the sidecar to a Pod's spec, and wraps the commands; no IO
    container_socket    takes over the layers that `clew-mount` makes in the containers
    served_layer        a layer that a container mounted, and its volume
    pod_observer        reads the layers, as `node.node_observer` does on a node
    pod_agent           puts the sidecar together
    replacement_pod     a Pod to create in place of one that runs; no IO
    fuse_device         the device plugin that gives containers /dev/fuse

The containers mount the layers themselves, in a user namespace. What they do becomes events in
`node.file_witness`, as on a node. `layer_injection` is imported by the webhook in `sidecars`.
"""
