"""Runs one task: a forked worker, a process or a container, with its files, volumes and packages.

Never decides which task is next (`engine`) and never writes the run's record (`runs`).
"""
