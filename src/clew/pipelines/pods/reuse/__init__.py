"""Reuse of tasks in images: whether an earlier task may take the place of one, wherever it ran.

    image_reuse    finds the earlier task, and decides
    pod_reuse      the digest of its image, and its outputs in the store
    pod_facts      what its processes read
    result_copies  copies its outputs between this machine and the store

Starts no Pods and knows nothing of attempts that run. Imported by `pod_backend`, and for containers
of this machine by `runner`.
"""
