-- Launches that wait for the reset of a plan limit, each started once.
CREATE TABLE planned_launches (
    -- Of a session the id that its row gets.
    launch_id   TEXT    PRIMARY KEY,
    kind        TEXT    NOT NULL CHECK (kind IN ('session', 'job')),
    -- What was asked for, as JSON.
    request     TEXT    NOT NULL,
    asked_at    INTEGER NOT NULL,
    due_at      INTEGER NOT NULL,
    -- `begun` is written before anything is started.
    state       TEXT    NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'begun', 'started', 'failed', 'cancelled')),
    -- Ids of the jobs that were there when the start of a job began, as JSON: another one is it.
    jobs_before TEXT    NOT NULL DEFAULT '[]',
    started_as  TEXT,
    reason      TEXT,
    ended_at    INTEGER
) STRICT;

PRAGMA user_version = 17;
