-- What claims ask for, summed up on their worker, and what that has (NULL: it does not say); since
-- when claims are idle.
ALTER TABLE claims ADD COLUMN cpu_milli INTEGER NOT NULL DEFAULT 0;
ALTER TABLE claims ADD COLUMN memory_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE claims ADD COLUMN idle_since REAL;
CREATE INDEX claims_by_idleness ON claims (idle_since) WHERE idle_since IS NOT NULL;

ALTER TABLE workers ADD COLUMN cpu INTEGER;
ALTER TABLE workers ADD COLUMN memory INTEGER;
ALTER TABLE workers ADD COLUMN allocated_cpu INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workers ADD COLUMN allocated_memory INTEGER NOT NULL DEFAULT 0;
CREATE INDEX workers_draining ON workers (name) WHERE active = 0;
