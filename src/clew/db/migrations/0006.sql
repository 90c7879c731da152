-- Schema 6: signatures of imported records, and with which record a note came.
-- docs/formats/graph.md describes every column.

CREATE TABLE signature (
    execution {int} NOT NULL,
    key TEXT NOT NULL,
    events TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (execution, key)
) {clustered};

ALTER TABLE note ADD COLUMN execution {int};
