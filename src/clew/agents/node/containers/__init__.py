"""The containers of a node, and which of their mounts are watched.

    container_discovery   which containers start and end, found by their cgroups
    cgroups, mount_table  the container and the mounts of a process; no IO beyond /proc
    container_settings    user, label and addresses of a container before its program starts
    watch_plan            what to watch of a Pod; no IO
    watched_container     one container: its event queue and the agent's mounts of its volumes

Reads no events, and knows nothing of files. Imported by `agents.node` and `agents.pod`.
"""
