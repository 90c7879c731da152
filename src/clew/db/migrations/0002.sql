-- Schema 2: by which words a program was started, to find it again.

ALTER TABLE started ADD COLUMN words {int};
CREATE INDEX started_words ON started (words) WHERE words IS NOT NULL;
