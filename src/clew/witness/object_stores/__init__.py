"""From the access log of a Pod's sidecar to events: objects of S3, and other traffic. No IO.

    access_log       one line of the log, and how it is checked
    s3_requests      which operation a request is, and on which bucket and key
    uploads          multipart uploads, whose parts become one version
    versions         the versions of objects that a Pod met
    summaries        how many requests, bytes and ranges there were, by the minute
    pod_context      the Pod that the log belongs to, and the container that made a request
    object_fold      requests to an object store as events; object_events: about one object
    connection_fold  other traffic as events; connected_peers: their other ends
    traffic_fold     lines to events, by these two

Never reads a file or asks Kubernetes: `agents.sidecars` follows the logs and acts on the results.
"""
