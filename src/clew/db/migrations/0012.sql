-- Schema 12: what an access token is for.

ALTER TABLE access_token ADD COLUMN scope TEXT NOT NULL DEFAULT 'all';
