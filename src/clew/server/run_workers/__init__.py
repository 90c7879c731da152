"""Doing what was asked for.

`runners` keeps some processes at hand, each of which (`runner`) takes one run at a time from the
catalogue, and does it with a worker that waited for it. They share nothing but the database: so
those of several servers share the work. `ticking` asks for the runs that schedules are due.
"""
