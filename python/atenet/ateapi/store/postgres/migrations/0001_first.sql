CREATE TABLE atenet_schema (
    version INTEGER PRIMARY KEY,
    applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- Bodies are serialized ateapi messages; columns beside them are what queries need. Text is compared
-- byte by byte, so that pages are in the same order on every server and in every store.
CREATE TABLE atespaces (
    name TEXT COLLATE "C" PRIMARY KEY,
    body BYTEA NOT NULL
);

CREATE TABLE templates (
    atespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (atespace, name)
);

CREATE TABLE actors (
    uid TEXT COLLATE "C" NOT NULL UNIQUE,
    atespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    state INTEGER NOT NULL,
    template_atespace TEXT COLLATE "C" NOT NULL,
    template_name TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (atespace, name)
);
CREATE INDEX actors_by_template ON actors (template_atespace, template_name);
-- Only the few in an intermediate state (RESUMING, SUSPENDING, PAUSING, DELETING, REVERTING).
CREATE INDEX actors_in_motion ON actors (state) WHERE state IN (1, 3, 5, 8, 9);

CREATE TABLE workers (
    name TEXT COLLATE "C" PRIMARY KEY,
    epoch BIGINT NOT NULL,
    active INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    allocated INTEGER NOT NULL DEFAULT 0 CHECK (allocated >= 0),
    heartbeat_at DOUBLE PRECISION NOT NULL,
    lost INTEGER NOT NULL,
    -- Whether claims of an earlier epoch are left: set when the epoch changes, so that looking
    -- for them costs nothing while there are none.
    unsettled INTEGER NOT NULL DEFAULT 0,
    body BYTEA NOT NULL
);
CREATE INDEX workers_unsettled ON workers (name) WHERE unsettled = 1;

CREATE TABLE claims (
    actor_uid TEXT COLLATE "C" PRIMARY KEY,
    worker TEXT COLLATE "C" NOT NULL,
    worker_epoch BIGINT NOT NULL
);
CREATE INDEX claims_by_worker ON claims (worker, actor_uid);

CREATE TABLE garbage (
    uri TEXT COLLATE "C" PRIMARY KEY
);

-- Control planes that serve this database. One whose time is up counts as dead.
CREATE TABLE replicas (
    id TEXT COLLATE "C" PRIMARY KEY,
    expires_at TIMESTAMPTZ NOT NULL
);

-- Who works on which actor. A token is never given twice: a replica that was thought dead and
-- comes back still has its old one, and every write under it is refused.
CREATE TABLE operations (
    actor_uid TEXT COLLATE "C" PRIMARY KEY,
    replica TEXT COLLATE "C" NOT NULL,
    token BIGINT NOT NULL
);
CREATE SEQUENCE operation_tokens AS BIGINT;
