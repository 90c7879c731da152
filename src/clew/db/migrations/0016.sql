-- Schema 16: find the addresses that led to a Service.

CREATE INDEX alias_b ON alias (b, at);
