"""The forms of the web app: what administrators configure and users fill in, without IO.

`spawner_config` is the one exception: it reads its file again when that changes.
"""
