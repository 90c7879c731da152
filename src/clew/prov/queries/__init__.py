"""Queries of the graph. Each module answers one kind.

    executions, execution_list  find executions, and list those that meet conditions
    show              one execution in full: processes, environment, gaps, files, network
    execution_record  everything recorded about one execution, also what it inherits from its worker
    files             what an execution did to each path, and the versions of a path
    targets           what a user typed to the thing that it names
    lineage           where a thing came from, what it went into, paths between two things
    cluster           the same across Pods, and what a caller may see of it
    pipelines         runs, tasks, and how a run progressed
    contents          which execution made which content, and which content is referenced (for `gc`)
    search            find things by part of a path, command, name or digest
    notes, tags       notes of users
    repeat_results    the results of repeats
    tracked_files     the user's files as executions left them
    same_command      programs that were started in the same way
    formats           how values of the graph look in answers

Answers are documents (`clew.documents`) or plain values; their ids are those that users type
(`e2.p3`). Imported by every package above `prov`.
"""
