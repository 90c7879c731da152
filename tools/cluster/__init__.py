"""A real Kubernetes of two nodes on one machine, for tests: `python -m tools.cluster up`.

Everything runs in namespaces of its own (processes, mounts, network), held by one process: when
that ends, the kernel ends the rest, with every mount, bridge and firewall rule. Outside there are
only a folder, a veth pair between the two networks, one nftables table, a few cgroups and a
note in /run; all have names that follow from the path of the folder.

Development tooling: uses the standard library and external programs, nothing of `clew`.
"""
