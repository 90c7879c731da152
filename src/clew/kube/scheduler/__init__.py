"""The scheduler extender: kube-scheduler asks it where latency-aware Pods should run.

    wire_format        the JSON of kube-scheduler and of the objects that are watched
    extender           filter and prioritize, without IO
    scheduling_state   latencies, costs and Pods, as the watches reported them, without IO
    prediction_process predicts what is not measured, in a process of its own
    latencies/         latencies that are measured or predicted, instead of entered on nodes
    list_watch         follows the objects of one kind
    pod_reports        events and conditions of Pods: why they are where they are, or nowhere
    http_app           the routes
    metrics            what /metrics says
    options            what the command is given, checked
    service            starts and ends all of it

Decisions are in `clew.placement`. Imported by the commands `clew scheduler` and
`clew agent latency`.
"""
