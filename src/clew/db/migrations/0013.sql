-- Schema 13: pipelines that lists do not show any more.

ALTER TABLE pipeline ADD COLUMN archived {int} NOT NULL DEFAULT 0;
