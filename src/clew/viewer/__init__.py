"""A folder, in a browser: what a volume holds can be seen, fetched, sent, changed.

`volume` is the folder, and the one place that opens anything in it: nothing outside is reachable,
whatever links and renames do. `listing`, `fetching`, `sending`, `changing` are what can be done
with it; `app` is HTTP, `page.*` what a browser shows. It has no idea who asks: whoever stands
before it must know that. It knows nothing of projects, and imports nothing of Clew but errors.
"""
