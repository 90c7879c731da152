"""What an audit event says about a Pod.

    pods              the Pod, its phases and its end
    containers        its containers, and what each ran
    container_inputs  what the spec says that they read: claims, ConfigMaps, Secrets
    masked_pod        the spec of a Pod without its secrets

Imported by the other modules of `kubernetes_audit`, and by `api`.
"""
