"""A compiled Kubeflow pipeline as typed values: its parser, values, conditions and placeholders.

Pure: text in, values or an error with the place of the fault out. Never runs anything. Imported
by the rest of `pipelines`, and by `server` to check what it receives.
"""
