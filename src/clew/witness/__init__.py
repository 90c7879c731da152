"""Who saw it: witnesses, which turn what they see of running work into events.

Here belong the readers of system calls, of the machine's surroundings, of package managers'
records and of secrets to be kept out of the record. Never here: SQL, chunks, or anything that
starts work. `run` and the rooms above it may import this one.
"""
