"""Routes about pipelines, schedules and experiments that Kubeflow's API does not have.

They say what the pages need in one request, and create schedules. Everything else, such as uploads
and archiving, is done with Kubeflow's routes. Imported by `v1.routes`.
"""
