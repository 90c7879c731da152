"""A real Kubernetes of two nodes on one machine, for tests: `python -m tools.cluster up`.

Everything runs inside namespaces of its own (processes, mounts, network), held by one process: end
that process and the kernel ends the rest, with every mount, bridge and firewall rule. What a
cluster leaves outside of them is little, and written down before it is made: a folder, a cable
between the two networks, one nftables table, a few cgroups, a note in /run.

Development tooling: the standard library and other people's programs, nothing of `clew`.
"""
