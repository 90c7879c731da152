"""Create, edit and delete notebooks, TensorBoards and volumes.

    creation, edits, deletion   what a form, a patch or edited YAML changes
    pod_restrictions            what users may not put into a Pod
    open_tensorboard            the TensorBoard that shows some logs, created if there is none

Contains no HTTP and no form defaults of its own. Imported by the routes of `server`.
"""
