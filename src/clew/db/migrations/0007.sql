-- Schema 7: sessions that were ended. docs/formats/graph.md describes every table and column.

CREATE TABLE revoked (
    project {int} NOT NULL,
    id TEXT NOT NULL,
    expires {int} NOT NULL,
    PRIMARY KEY (project, id)
) {clustered};
