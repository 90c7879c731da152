"""Comparing two executions: processes, outputs, inputs, and which differences do not matter.

Only reads the record and the store; never runs anything. Imported by `explain` and `api`.
"""
