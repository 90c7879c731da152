"""How latencies are measured: what to probe, and what the probes say.

    locations          the locations that an administrator configures, with their addresses
    round_result       several probes of one target as one latency
    target_record      what a node knows of one target over time
    default_locations  which locations a node measures of its own accord

Pure, and free of numpy. Agents on nodes use it, and the scheduler that asks them.
"""
