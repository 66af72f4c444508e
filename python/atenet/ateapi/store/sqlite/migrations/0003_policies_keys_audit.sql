-- Of an actor's incarnation, not of its name: one that is made again has none.
CREATE TABLE policies (
    actor_uid TEXT PRIMARY KEY REFERENCES actors (uid) ON DELETE CASCADE,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE signing_keys (
    kid TEXT PRIMARY KEY,
    created_at REAL NOT NULL,
    signs_from REAL NOT NULL,
    private_key BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at REAL NOT NULL,
    subject TEXT NOT NULL,
    method TEXT NOT NULL,
    target TEXT NOT NULL,
    uid TEXT NOT NULL,
    trace_id TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_target ON audit (target, number);

-- Written once; only what has had its time may go.
CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
WHEN OLD.at > unixepoch() - 86400
BEGIN
    SELECT RAISE(ABORT, 'the audit log keeps every entry for a day at least');
END;
