-- Of an actor's incarnation, not of its name: one that is made again has none.
CREATE TABLE policies (
    actor_uid TEXT COLLATE "C" PRIMARY KEY REFERENCES actors (uid) ON DELETE CASCADE,
    body BYTEA NOT NULL
);

CREATE TABLE signing_keys (
    kid TEXT COLLATE "C" PRIMARY KEY,
    created_at DOUBLE PRECISION NOT NULL,
    signs_from DOUBLE PRECISION NOT NULL,
    private_key BYTEA NOT NULL
);

CREATE TABLE audit (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    subject TEXT NOT NULL,
    method TEXT NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    uid TEXT NOT NULL,
    trace_id TEXT NOT NULL
);
CREATE INDEX audit_by_target ON audit (target, number);

-- Written once; only what has had its time may go.
CREATE FUNCTION audit_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        IF OLD.at <= extract(epoch FROM now()) - 86400 THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION 'the audit log keeps every entry for a day at least'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RAISE EXCEPTION 'the audit log is append-only'
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$;
CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE ON audit
FOR EACH ROW EXECUTE FUNCTION audit_refuses();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_refuses();
