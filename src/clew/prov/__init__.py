"""The record: what ran, what it read and wrote, and the questions one can ask of it.

Inside belong the event schema, the fold of events into rows, the graph's tables, the questions
(`clew.prov.queries`) and the exports (W3C PROV, RO-Crate). Nothing here opens a file of the
user's, touches stored bytes or prints: bytes and digests of files as they are now come from
callers. Every room above may import this one; it imports `db` and what lies below.
"""
