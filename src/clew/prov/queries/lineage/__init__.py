"""Lineage: where a thing came from, what it went into, and the paths between two things."""
