"""The file witness of a node: `clew agent node`.

    node_agent         starts the threads, and connects them
    node_observer      one thread: marks the volumes of containers, reads the kernel's queues
    container_starts   containers that start, until it is known what they are
    containers         which containers there are, and which of their mounts are watched
    observation_batch  what the observer found in one round
    file_witness       the other thread: turns observations into events in the spool
    event_translation  events of fanotify as accesses
    lifecycle_events   events about the node, its Pods, containers and claims
    losses             what was lost of a container, which then counts as watched no longer
    content_queue, content_reader  digests and bytes of files
    version_journal    the numbers of versions and what is watched, kept across restarts
    layer              the pass-through file system for network volumes
    kernel             fanotify, inotify, mounts, file handles

What an access means is decided in `witness.volumes`. Imported by the command
and by `agents.pod`.
"""
