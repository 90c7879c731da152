"""The routes of Kubeflow's web apps: notebooks, TensorBoards and volumes.

    request_body   a JSON body, as upstream accepts it
    csrf           the cookie that a page repeats in a header
    app_routes     what all three apps have
    jupyter, tensorboards, volumes   the routes of each app
    routes         puts them together

Paths, fields and statuses are upstream's, so that its front ends and scripts work here. Our own web
app uses the same routes. What they do is in `workloads`; our additions are in `v1.workloads`.
"""
