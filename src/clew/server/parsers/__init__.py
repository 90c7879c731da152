"""Parsers of what clients send, with limits: YAML, compiled pipelines, event batches, cron lines.

Input is untrusted: each parser bounds size, depth and count before it works. Pure: no IO and no
database. Imported by the routes, `catalogue` and `run_preparation`.
"""
