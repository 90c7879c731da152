"""The documents of notebooks, TensorBoards and volumes: a `workload` in Clew's own API, the `forms`
that create and change one, and the responses of `kubeflow`'s routes. Any package may import it."""
