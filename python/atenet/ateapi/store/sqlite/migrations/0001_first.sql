-- Bodies are serialized ateapi messages; columns beside them are what queries need.
CREATE TABLE atespaces (
    name TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE templates (
    atespace TEXT NOT NULL,
    name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (atespace, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE actors (
    uid TEXT NOT NULL UNIQUE,
    atespace TEXT NOT NULL,
    name TEXT NOT NULL,
    state INTEGER NOT NULL,
    template_atespace TEXT NOT NULL,
    template_name TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (atespace, name)
) STRICT;
CREATE INDEX actors_by_template ON actors (template_atespace, template_name);
-- Only the few in an intermediate state (RESUMING, SUSPENDING, PAUSING, DELETING, REVERTING).
CREATE INDEX actors_in_motion ON actors (state) WHERE state IN (1, 3, 5, 8, 9);

CREATE TABLE workers (
    name TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    active INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    allocated INTEGER NOT NULL DEFAULT 0 CHECK (allocated >= 0),
    heartbeat_at REAL NOT NULL,
    lost INTEGER NOT NULL,
    -- Whether claims of an earlier epoch are left: set when the epoch changes, so that looking
    -- for them costs nothing while there are none.
    unsettled INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX workers_unsettled ON workers (name) WHERE unsettled = 1;

CREATE TABLE claims (
    actor_uid TEXT PRIMARY KEY,
    worker TEXT NOT NULL,
    worker_epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX claims_by_worker ON claims (worker, actor_uid);

CREATE TABLE garbage (
    uri TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
