-- Schema 4: what passed through the proxy. docs/formats/graph.md describes every table and column.

CREATE TABLE traffic (
    project {int} NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    last_activity {int} NOT NULL,
    requests {int} NOT NULL,
    sockets {int} NOT NULL,
    bytes_in {int} NOT NULL,
    bytes_out {int} NOT NULL,
    PRIMARY KEY (project, kind, namespace, name)
) {clustered};
