"""Compare up to ten executions and pipeline runs.

`activity_properties` collects what is known of each, `table` puts the properties side by side.
Imported by the server.
"""
