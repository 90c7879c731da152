-- Schema 17: find the objects of a cluster.

CREATE INDEX started_object ON started (kind, at)
WHERE kind IN ('pod', 'claim', 'controller', 'request');
