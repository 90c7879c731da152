-- Schema 3: what the server was asked for. docs/formats/graph.md describes every table and column.
-- Times are nanoseconds; what is large stands last.

CREATE TABLE experiment (
    id TEXT PRIMARY KEY,
    project {int} NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    created {int} NOT NULL,
    last_run {int},
    archived {int} NOT NULL,
    UNIQUE (project, name)
);

CREATE TABLE pipeline (
    id TEXT PRIMARY KEY,
    project {int} NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    created {int} NOT NULL,
    UNIQUE (project, name)
);

-- A compiled pipeline, by the digest of its text: many runs and versions share one.
CREATE TABLE spec (
    project {int} NOT NULL,
    digest TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (project, digest)
);

CREATE TABLE pipeline_version (
    id TEXT PRIMARY KEY,
    project {int} NOT NULL,
    pipeline TEXT NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description TEXT NOT NULL,
    tags TEXT NOT NULL,
    created {int} NOT NULL,
    spec TEXT NOT NULL,
    UNIQUE (pipeline, name)
);

-- `config` is what the run is given: {parameters, pipeline_root, …}; `state` is one of queued,
-- running, succeeded, failed, canceled; `holder` runs it, as long as its `lease` lasts.
CREATE TABLE run (
    id TEXT PRIMARY KEY,
    project {int} NOT NULL,
    created {int} NOT NULL,
    state TEXT NOT NULL,
    archived {int} NOT NULL,
    experiment TEXT NOT NULL,
    schedule TEXT,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    pipeline TEXT,
    version TEXT,
    spec TEXT NOT NULL,
    scheduled {int},
    began {int},
    finished {int},
    stop {int} NOT NULL,
    holder TEXT,
    lease {int} NOT NULL,
    tries {int} NOT NULL,
    service_account TEXT NOT NULL,
    error TEXT,
    config TEXT NOT NULL
);
CREATE INDEX run_created ON run (project, created, id);
CREATE INDEX run_experiment ON run (experiment, created);
CREATE INDEX run_schedule ON run (schedule, created) WHERE schedule IS NOT NULL;
CREATE INDEX run_open ON run (project, created) WHERE state IN ('queued', 'running');

-- `cron` or `interval` (seconds) says when; `next` is the tick that is not run yet.
CREATE TABLE schedule (
    id TEXT PRIMARY KEY,
    project {int} NOT NULL,
    created {int} NOT NULL,
    experiment TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    enabled {int} NOT NULL,
    cron TEXT,
    interval {int},
    starts {int},
    ends {int},
    next {int},
    most {int} NOT NULL,
    catchup {int} NOT NULL,
    pipeline TEXT,
    version TEXT,
    spec TEXT,
    service_account TEXT NOT NULL,
    updated {int} NOT NULL,
    config TEXT NOT NULL
);
CREATE INDEX schedule_next ON schedule (project, next) WHERE enabled = 1;
