-- Schema 11: the tables of the web app. docs/formats/graph.md describes every table and column.

-- One row for each execution and run, with what lists show, search and sort by. It is made from the
-- other tables, and can be deleted and made again at any time.
CREATE TABLE activity_summary (
    id {id},
    project {int} NOT NULL,
    uid TEXT NOT NULL,
    type TEXT NOT NULL,
    number {int},
    state TEXT NOT NULL,
    progress {int} NOT NULL,
    recorded {int} NOT NULL,
    requested TEXT NOT NULL,
    name TEXT,
    kind TEXT NOT NULL,
    task TEXT,
    parent {int},
    started {float},
    ended {float},
    seconds {float},
    agent TEXT,
    experiment TEXT,
    archived {int} NOT NULL,
    made_elsewhere {int} NOT NULL,
    error TEXT,
    git TEXT,
    git_commit TEXT,
    command TEXT NOT NULL,
    search TEXT NOT NULL
);
CREATE INDEX activity_summary_started ON activity_summary (project, started, id);
CREATE INDEX activity_summary_uid ON activity_summary (project, uid);
CREATE INDEX activity_summary_number ON activity_summary (project, number);
CREATE INDEX activity_summary_open ON activity_summary (project) WHERE progress < 2;

-- The parameters and metrics of each.
CREATE TABLE activity_value (
    activity {int} NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    project {int} NOT NULL,
    position {int} NOT NULL,
    number {float},
    text TEXT,
    PRIMARY KEY (activity, kind, name)
) {clustered};
CREATE INDEX activity_value_name ON activity_value (project, kind, name, number);

-- Repeats that a server was asked for.
CREATE TABLE repeat_request (
    id TEXT PRIMARY KEY,
    project {int} NOT NULL,
    created {int} NOT NULL,
    state TEXT NOT NULL,
    target TEXT NOT NULL,
    target_uid TEXT NOT NULL,
    began {int},
    finished {int},
    stop {int} NOT NULL,
    holder TEXT,
    lease {int} NOT NULL,
    tries {int} NOT NULL,
    error TEXT,
    options TEXT NOT NULL,
    output TEXT NOT NULL,
    verdict TEXT,
    result TEXT
);
CREATE INDEX repeat_request_created ON repeat_request (project, created, id);
CREATE INDEX repeat_request_open ON repeat_request (project, created) WHERE state IN ('queued', 'running');

-- Personal access tokens: only their hashes.
CREATE TABLE access_token (
    id TEXT PRIMARY KEY,
    project {int} NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    created {int} NOT NULL,
    expires {int} NOT NULL,
    last_used {int},
    UNIQUE (project, hash)
);

-- Requests that carried an Idempotency-Key, and what they made.
CREATE TABLE idempotent_request (
    project {int} NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    made TEXT NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (project, key)
) {clustered};

-- Sample pipelines that were added to the catalogue once. A deleted sample is not added again.
CREATE TABLE sample (
    project {int} NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (project, name)
) {clustered};
