"""What the witnesses of a cluster share: the ids and locators of what they observe, and the rules
for events that several of them send about one Pod.

    activity_uids        uids of Pods and containers; the kinds of a cluster
    locators             places in a cluster
    facets               the facet `kubernetes` of each kind
    observation_numbers  numbers of events that need no counter
    watch_declarations   what a witness declares of the file accesses of a container
    observation_validation  what an agent may add to the graph
    ancestry_types       the Pods that a target depends on, for the plan of a reproduction

`docs/decisions/0016-how-cluster-lineage-works.md` gives the reasons.
"""
