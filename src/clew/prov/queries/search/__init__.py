"""Find things by parts of what they are called.

Contains the search and how its rows become hits. Imported by the server.
"""
