"""Witnesses: they observe running work and turn what they see into events.

    tracer_binary      where clew-trace and its library are installed
    syscalls           from the trace of clew-trace to events
    downloads          where downloaded files came from
    volumes            from accesses to files on volumes of Pods to events
    kubernetes_audit   from the audit log of the API server to events
    object_stores      from the requests of Pods to object stores to events
    environment        the machine, the Git commit and the variables of an execution
    accelerators       GPUs and their software

Never contains SQL or anything that starts work. Imported by `run`, `agents` and the packages above.
"""
