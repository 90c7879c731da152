"""Compare executions, Pods and pipeline runs.

`diff` compares two executions or Pods in full. For the table of up to ten executions and runs,
`activity_properties` collects what is known of each, and `table` puts it side by side. Imported by
`api.local` and the server.
"""
