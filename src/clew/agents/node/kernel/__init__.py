"""System calls of Linux that the node agent needs, each in a thin module.

    fanotify, inotify  queues of events
    mount_namespace    copies of mounts of a container
    volume_mount       the agent's own mount of a volume: paths and files by handles
    processes          files as another process sees them
    libc               calls that Python does not have

Knows nothing about Kubernetes or events of Clew. Imported by `agents.node` and
`agents.pod`.
"""
