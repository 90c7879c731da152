"""A compiled Kubeflow pipeline as typed values: its parser, values, conditions and placeholders.

Pure: text in, values or an error with its location out. Never runs anything, and imports nothing
else of `pipelines`. Imported by the rest of `pipelines`, and by `server` to check uploads.
"""
