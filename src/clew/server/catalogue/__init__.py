"""What the server was asked for: experiments, pipelines and their versions, runs, schedules.

A module for each of them, with its SQL; every function is given the graph of the project, and is
one transaction. `listing` answers a page of any of them, by the fields that `tables` names. How a
run went is told by the graph itself: a run here and there has one uid.
"""
