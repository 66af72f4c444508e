-- What claims ask for, summed up on their worker, and what that has (NULL: it does not say); since
-- when claims are idle.
ALTER TABLE claims ADD COLUMN cpu_milli BIGINT NOT NULL DEFAULT 0;
ALTER TABLE claims ADD COLUMN memory_bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE claims ADD COLUMN idle_since DOUBLE PRECISION;
CREATE INDEX claims_by_idleness ON claims (idle_since) WHERE idle_since IS NOT NULL;

ALTER TABLE workers ADD COLUMN cpu BIGINT;
ALTER TABLE workers ADD COLUMN memory BIGINT;
ALTER TABLE workers ADD COLUMN allocated_cpu BIGINT NOT NULL DEFAULT 0;
ALTER TABLE workers ADD COLUMN allocated_memory BIGINT NOT NULL DEFAULT 0;
CREATE INDEX workers_draining ON workers (name) WHERE active = 0;
