"""Sessions: a recorded command that stays alive and forks a child for each task.

Splits the one trace of a session into one execution per task. Knows nothing about pipelines;
`pipelines` imports it for its warm workers.
"""
