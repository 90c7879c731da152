"""Questions to the graph: each module answers one kind, in the shapes of the contract.

    executions   the list, and one execution's line of it
    shows        one execution in full: processes, environment, gaps, files, network
    files        what an execution did to each path, and the versions of a path
    targets      from what a user typed to what it names
    lineage      where a thing came from, and what it went into (`steps` asks, `nodes` draws)
    between      how two things are tied
    searching    things, by what one remembers of them
    changes      how a pipeline run went, step by step
    notes        what people said about things
    contents     which bytes are still named by somebody

Answers are plain dicts and lists, ready for JSON; ids in them are the user's (`e2.p3`).
"""
