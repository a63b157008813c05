-- Events that are posted to webhooks until each target took them (`webhooks.outbox`).
-- Times are milliseconds since the Unix epoch.

CREATE TABLE outbox_events (
    -- Counts up and is never used again: the order of the posts.
    seq      INTEGER PRIMARY KEY AUTOINCREMENT,
    -- The id that every target is told.
    delivery TEXT    NOT NULL UNIQUE,
    event    TEXT    NOT NULL,
    at       INTEGER NOT NULL,
    -- What is posted, redacted.
    body     TEXT    NOT NULL
) STRICT;

CREATE INDEX outbox_events_by_time ON outbox_events (at);

CREATE TABLE outbox_posts (
    -- Digest of the entry of `webhooks.urls`, which is secret.
    target   TEXT    NOT NULL,
    seq      INTEGER NOT NULL REFERENCES outbox_events (seq) ON DELETE CASCADE,
    state    TEXT    NOT NULL CHECK (state IN ('waiting', 'delivered', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Since when it waits: the event, or a replay.
    since    INTEGER NOT NULL,
    -- Before this it is not tried again.
    next_at  INTEGER NOT NULL DEFAULT 0,
    status   INTEGER,
    reason   TEXT,
    PRIMARY KEY (target, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX outbox_posts_by_state ON outbox_posts (target, state, seq);
CREATE INDEX outbox_posts_by_event ON outbox_posts (seq);

-- Steps in the life of a session that are recorded and not yet in the outbox. Written with the
-- record of the step, so that no kill loses one.
CREATE TABLE outbox_owed (
    instance_id TEXT    NOT NULL,
    generation  INTEGER NOT NULL,
    event       TEXT    NOT NULL CHECK (event IN ('spawn', 'ready', 'stop', 'crash')),
    at          INTEGER NOT NULL,
    PRIMARY KEY (instance_id, generation, event)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 20;
