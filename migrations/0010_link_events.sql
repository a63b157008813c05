-- The history also tells when a bridge lost its remote link and when the link came back.

CREATE TABLE link_session_events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project      TEXT    NOT NULL REFERENCES projects (name) ON DELETE CASCADE,
    instance_id  TEXT    NOT NULL,
    mode         TEXT    NOT NULL CHECK (mode IN ('standard', 'pty', 'hosted')),
    kind         TEXT    NOT NULL CHECK (kind IN
        ('spawned', 'ready', 'ended', 'crashed', 'link_lost', 'link_restored')),
    at           INTEGER NOT NULL,
    session_ref  TEXT,
    exit_reason  TEXT,
    -- What is known besides, in words: why the link was lost.
    detail       TEXT
) STRICT;

INSERT INTO link_session_events
    (id, project, instance_id, mode, kind, at, session_ref, exit_reason)
    SELECT id, project, instance_id, mode, kind, at, session_ref, exit_reason FROM session_events;
DROP TABLE session_events;
ALTER TABLE link_session_events RENAME TO session_events;

CREATE INDEX session_events_by_project ON session_events (project, at);
CREATE INDEX session_events_by_time ON session_events (at);

PRAGMA user_version = 10;
