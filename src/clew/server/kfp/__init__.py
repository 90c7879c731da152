"""Kubeflow Pipelines' API, v2beta1, as its stock client and command line ask it."""
