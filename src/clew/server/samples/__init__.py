"""The sample pipelines: the compiled pipelines of `examples/`, added to the catalogue once.

`python -m tools.sample_pipelines` compiles them. Imported by `catalogue.samples`.
"""
