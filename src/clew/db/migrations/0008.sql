-- Schema 8: pipeline runs have a table of their own. Before, they were executions with negative
-- numbers, and `run` was the table of requests.

ALTER TABLE run RENAME TO run_request;

CREATE TABLE run (
    id {id},
    project {int} NOT NULL,
    uid TEXT NOT NULL,
    number {int} NOT NULL,
    begun {int} NOT NULL,
    UNIQUE (project, number)
);

INSERT INTO run (id, project, uid, number, begun)
SELECT id, project, uid, -number, COALESCE(begun, 0) FROM execution WHERE number < 0;

DELETE FROM execution WHERE number < 0;
