"""Who saw it: witnesses, which turn what they see of running work into events.

Here belong the readers of system calls, of the machine's surroundings and of package managers'
records. Never here: SQL, chunks, or anything that starts work.
`run` and the packages above it may import this one.
"""
