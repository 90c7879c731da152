"""The record: events, their fold into the graph, queries, and exports of the record.

    events, event_numbers   the event types, their numbers and kinds
    fold, row_keys, tables, graph   events to rows; the graph of one project
    locators, package_urls, file_classes   names of places and packages; classes of files
    facets, event_validation, import_scope, imported_signatures   checks of foreign records
    cluster     what the witnesses of a cluster share
    queries     lineage, executions, files, runs, search
    export      W3C PROV, RO-Crate, events, reports

Never opens a user's file, reads stored content or prints: callers pass digests in. Imported by
every package above; imports `db` and the small modules below it. Independent of `store`.
"""
