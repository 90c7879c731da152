"""The documents of executions: one in a list, its summary, its details, repeats of it, and its
transfer to and from remotes. Nothing about pipeline runs. Any package may import it."""
