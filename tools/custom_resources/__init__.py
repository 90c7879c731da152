"""Writes deploy/crds: the custom resources as Kubernetes is told of them.

    python -m tools.custom_resources

Their Pods may ask for whatever Kubernetes offers, so the schema of a Pod is taken from the models
of the client; what Kubeflow's own definitions demand is kept, and names that cannot work are
refused before anything is made of them. Run it after an upgrade of lightkube; a test holds it.
"""
