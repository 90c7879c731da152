"""The sidecar of selected Pods that sees requests to object stores, and its access log.

    traffic_sidecar_names  names that the sidecar, the webhook and the reader share
    envoy_config       the configuration of Envoy
    access_log_format  the lines of its access log
    pod_options        the annotations of a Pod, checked
    sidecar_injection  adds the sidecar to a Pod's spec; no IO
    admission          answers an AdmissionReview; no IO
    certificates       the webhook's certificates, and when to renew them
    webhook_server     serves the webhook over HTTPS
    pod_contexts       what the fold of a log must know of its Pod; no IO
    access_log_files   the files of one access log, and how far they were confirmed
    pod_access_log     follows the access log of one Pod
    node_logs          follows those of all Pods on a node

`witness.object_stores` says what the lines mean. Only `kube` talks to Kubernetes.
"""
