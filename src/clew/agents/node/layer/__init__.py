"""The pass-through layer: a FUSE file system between a container and a volume.

    layer_mount    starts `clew-layer` and puts it in place of a container's mount
    layer_records  what it reports, as accesses

For volumes where fanotify sees too little: the layer knows how a file was opened, and it works on
file systems that fanotify does not support. Imported by `agents.node` and `agents.pod`.
"""
