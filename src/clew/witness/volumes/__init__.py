"""From accesses to files on the volumes of Pods to events, without IO.

    accesses          what a node sees: a file was read, written, renamed or removed, by a container
    volumes           a watched volume, and the locators of its files
    access_order      one order of what several queues of the kernel report
    file_tables       the files of each watched volume, and since when it is watched
    file_versions     which version a file has now, and the numbers of versions
    pending_contents  which contents the fold asked for
    hard_links        several names of one file
    gaps              what the fold cannot tell, as events
    access_fold       accesses to events, with the versions of each file
    selection         which Pods and paths are watched, and whose content is stored

Never reads a file or asks Kubernetes: `agents.node` observes the node and acts on the results.
"""
