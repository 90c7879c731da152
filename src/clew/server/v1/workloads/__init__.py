"""Notebooks, TensorBoards and volumes: what Kubeflow's routes do not have.

backend         what runs them, and what it offers
details         everything about one of them, and how to change it
container_log   the log of a container, as a file or a stream
programs        install JupyterLab or TensorBoard
open_tensorboard   a TensorBoard of a run, a volume or a bucket
"""
