-- The graph, schema 1. docs/formats/graph.md describes every table and column.
-- Ids are 64-bit hashes of natural keys (project, and what the thing is), so the same fact is
-- the same row wherever it is written; only `execution.number` and `name` are given out here.

CREATE TABLE project (
    id {id},
    uid TEXT NOT NULL,
    executions {int} NOT NULL
);

CREATE TABLE execution (
    id {id},
    project {int} NOT NULL,
    uid TEXT NOT NULL,
    number {int} NOT NULL,
    name TEXT,
    begun {int},
    UNIQUE (project, number),
    UNIQUE (project, name)
);

CREATE TABLE location (
    id {id},
    project {int} NOT NULL,
    locator TEXT NOT NULL
);

-- Large columns stand last: a list of executions never reads as far as them.
CREATE TABLE started (
    id {id},
    execution {int} NOT NULL,
    n {int} NOT NULL,
    at {int} NOT NULL,
    uid TEXT NOT NULL,
    kind TEXT NOT NULL,
    parent {int},
    number {int},
    pid {int},
    agent TEXT,
    command TEXT NOT NULL,
    exe TEXT,
    cwd TEXT,
    name TEXT,
    image TEXT,
    node TEXT,
    mode TEXT,
    collection TEXT,
    environment TEXT NOT NULL,
    facets TEXT NOT NULL
);
CREATE INDEX started_execution ON started (execution, number);
CREATE INDEX started_forked ON started (parent) WHERE exe IS NULL;

CREATE TABLE ended (
    activity {int} NOT NULL,
    n {int} NOT NULL,
    at {int} NOT NULL,
    status {int},
    signal {int},
    processes {int},
    inputs {int},
    outputs {int},
    bytes {int},
    new_bytes {int},
    usage TEXT NOT NULL,
    facets TEXT NOT NULL,
    PRIMARY KEY (activity, n)
) {clustered};

CREATE TABLE version (
    id {id},
    execution {int} NOT NULL,
    location {int} NOT NULL,
    maker {int} NOT NULL,
    ordinal {int} NOT NULL,
    at {int} NOT NULL
);
CREATE INDEX version_execution ON version (execution, location);
CREATE INDEX version_found ON version (location, at) WHERE maker = execution;
CREATE INDEX version_made ON version (location, at) WHERE maker <> execution;

CREATE TABLE content (
    version {id},
    n {int} NOT NULL,
    digest {bytes} NOT NULL,
    size {int} NOT NULL,
    mode {int} NOT NULL,
    mtime {int} NOT NULL,
    stored {int} NOT NULL,
    package TEXT,
    source TEXT
);
CREATE INDEX content_digest ON content (digest);

CREATE TABLE used (
    activity {int} NOT NULL,
    n {int} NOT NULL,
    version {int} NOT NULL,
    at {int} NOT NULL,
    how TEXT NOT NULL,
    PRIMARY KEY (activity, n, version)
) {clustered};
CREATE INDEX used_version ON used (version);

CREATE TABLE generated (
    activity {int} NOT NULL,
    n {int} NOT NULL,
    version {int} NOT NULL,
    at {int} NOT NULL,
    how TEXT NOT NULL,
    finished {int} NOT NULL,
    PRIMARY KEY (activity, n, version)
) {clustered};
CREATE INDEX generated_version ON generated (version);

CREATE TABLE invalidated (
    activity {int} NOT NULL,
    n {int} NOT NULL,
    version {int} NOT NULL,
    at {int} NOT NULL,
    how TEXT NOT NULL,
    PRIMARY KEY (activity, n, version)
) {clustered};
CREATE INDEX invalidated_version ON invalidated (version);

CREATE TABLE looked (
    activity {int} NOT NULL,
    n {int} NOT NULL,
    location {int} NOT NULL,
    kind TEXT NOT NULL,
    at {int} NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (activity, n, location, kind)
) {clustered};

CREATE TABLE informed (
    activity {int} NOT NULL,
    n {int} NOT NULL,
    source {int} NOT NULL,
    at {int} NOT NULL,
    via TEXT NOT NULL,
    PRIMARY KEY (activity, n, source)
) {clustered};
CREATE INDEX informed_source ON informed (source);

CREATE TABLE alias (
    execution {int} NOT NULL,
    n {int} NOT NULL,
    a {int} NOT NULL,
    b {int} NOT NULL,
    at {int} NOT NULL,
    PRIMARY KEY (execution, n, a, b)
) {clustered};

CREATE TABLE gap (
    activity {int} NOT NULL,
    n {int} NOT NULL,
    what TEXT NOT NULL,
    why TEXT NOT NULL,
    location {int},
    at {int} NOT NULL,
    PRIMARY KEY (activity, n, what)
) {clustered};

-- What a person said. A note stands on an activity, on a version, or on bytes at a place.
CREATE TABLE note (
    id {id},
    project {int} NOT NULL,
    activity {int},
    version {int},
    location {int},
    digest {bytes},
    at {int} NOT NULL,
    agent TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL
);
CREATE INDEX note_activity ON note (activity);
CREATE INDEX note_version ON note (version);
CREATE INDEX note_location ON note (location);
