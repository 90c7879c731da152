"""Kubeflow pipelines: read the compiled IR, decide, and drive tasks through `run`.

`ir` is what a pipeline says, `reading` gets it from a file or refuses it with the place;
`engine` decides what is ready, skipped, tried again and over, without any IO; `running` carries
that out with one witnessed execution a task, and `recording` tells the graph. What would drive
Pods instead replaces `tasks` alone. Nobody but `api` imports this.
"""
