"""The record: events, their fold into the graph, queries, and exports of the record.

    events, event_numbers   the event types, their numbers and kinds
    fold, tables, graph   events to rows; the graph of one project
    facets, import_scope, record_schema, imported_signatures   checks of records from another party
    queries               lineage, executions, files, runs, search
    export                W3C PROV, RO-Crate, events, reports

Never opens a user's file, reads stored content or prints: callers pass digests in. Imported by
every package above; imports `db` and the small modules below it. Independent of `store`.
"""
