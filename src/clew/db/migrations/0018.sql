-- Schema 18: which executions are of a cluster, so that lists of the others never read them, and how
-- often agents have observed something.

ALTER TABLE project ADD COLUMN observations {int} NOT NULL DEFAULT 0;
ALTER TABLE execution ADD COLUMN of_cluster {int} NOT NULL DEFAULT 0;
UPDATE execution SET of_cluster = 1 WHERE EXISTS (
    SELECT 1 FROM started s
    WHERE s.id = execution.id AND s.kind IN ('pod', 'claim', 'controller', 'request', 'node')
);
CREATE INDEX execution_of_users ON execution (project, number) WHERE of_cluster = 0;
