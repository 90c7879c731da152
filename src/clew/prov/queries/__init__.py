"""Queries of the graph. Each module answers one kind.

    executions        the list of executions, and one entry of it
    show              one execution in full: processes, environment, gaps, files, network
    execution_record  everything recorded about one execution, also what it inherits from its worker
    files             what an execution did to each path, and the versions of a path
    targets           what a user typed to the thing that it names
    lineage           where a thing came from, what it went into, paths between two things
    pipelines         runs, tasks, and how a run progressed
    contents          which execution made which content, and which content is referenced (for `gc`)
    search            find things by part of a path, command, name or digest
    notes             notes of users

Answers are plain dicts and lists, ready for JSON; their ids are those that users type (`e2.p3`).
"""
