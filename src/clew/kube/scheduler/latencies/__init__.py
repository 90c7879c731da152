"""Latencies that the extender did not get from labels: measured by agents, and predicted.

node_latency_watch    the watch of all NodeLatencies, and the locations
latency_reports       what agents found, in the table that decisions read, without IO
measurement_requests  what nodes are asked to measure
predictions           predicts the rest, again and again, in a process of its own
"""
