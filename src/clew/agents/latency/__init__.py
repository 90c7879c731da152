"""`clew agent latency`: measures the latencies from its node, and publishes them.

    probes          one round-trip time: TCP connection or ICMP echo
    targets         what is probed, and when
    latency_agent   probes, publishes and follows what is asked
    metrics         what /metrics says

It needs no privilege and sends no events: unlike the other agents, it has no spool. What it
publishes is a `NodeLatency` (`kube/latency`).
"""
