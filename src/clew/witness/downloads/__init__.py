"""Origins of downloaded files: the URLs in command lines, caches and traces.

Never makes a network request. Imported by the system-call witness, and by
`pipelines` for the name of a file attribute.
"""
