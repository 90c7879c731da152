"""Kubeflow pipelines: read the compiled IR, decide, and drive tasks through `run`.

`ir` is what a pipeline says, `reading` gets it from a file or refuses it with the place;
`engine` decides what is ready, skipped, tried again and over, without any IO; `running` carries
that out with one witnessed execution a task, and `recording` tells the graph. `attempts` knows how
a task is run: forked by a worker (`tasks`), or as a command of its own (`processes`), also in an
image; what would drive Pods instead replaces that alone. Nobody but `api` imports this.
"""
