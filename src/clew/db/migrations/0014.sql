-- Schema 14: find what had a name in a cluster at a time.

CREATE INDEX alias_a ON alias (a, at);
CREATE INDEX started_pod ON started (name, at) WHERE kind = 'pod';
CREATE INDEX started_node ON started (name, at) WHERE kind = 'node';
