-- Schema 5: which records came from somewhere else. docs/formats/graph.md describes every column.

ALTER TABLE execution ADD COLUMN made_elsewhere {int} NOT NULL DEFAULT 0;
