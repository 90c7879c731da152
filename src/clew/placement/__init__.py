"""Where latency-aware Pods run: latencies from nodes to locations, predictions, and decisions.

    latency_table       round-trip times that were measured, each with its age and deviation
    latency_estimates   latencies with their errors, as scoring reads them
    measurement/        what nodes probe, and what the probes say
    prediction/         fills in the latencies that nobody measured
    node_labels         latencies and costs that administrators write on nodes
    request             what a Pod asks: where its clients are, its limit, its weights
    expected_latencies  the latencies that a Pod's clients would have on each node
    decision            which nodes a Pod may have, the best one, and the scores of all
    explanation         why a Pod is on its node, in one sentence
    pod_assignments     where Pods are, and where those will be that were just placed

Pure: everything here decides over plain values, without IO, a clock or Kubernetes; callers pass
times in. It imports nothing of Clew above `documents` and `errors`. Only `prediction` imports numpy
(the extra `placement`), so scoring on measured latencies works without it.
"""
