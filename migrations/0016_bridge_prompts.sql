-- What sessions ask through the agent's hook. A prompt is decided once.
-- Times are milliseconds since the Unix epoch, booleans 0 or 1.

CREATE TABLE bridge_prompts (
    -- Chosen by the hook, which asks again under it when the service was restarted.
    request_id   TEXT    PRIMARY KEY,
    -- The bridge that the session belongs to; null for a session that nobody manages.
    instance_id  TEXT    REFERENCES bridges (instance_id) ON DELETE CASCADE,
    project      TEXT    NOT NULL,
    -- Token of the session's own id.
    conversation TEXT,
    tool         TEXT,
    -- Redacted, and cut where it is long.
    summary      TEXT    NOT NULL,
    truncated    INTEGER NOT NULL CHECK (truncated IN (0, 1)),
    since        INTEGER NOT NULL,
    -- After this the session asks in its own client.
    expires_at   INTEGER NOT NULL,
    decision     TEXT    CHECK (decision IN ('allow', 'deny', 'cancelled')),
    -- Why it was withdrawn, or why an answer did not arrive.
    reason       TEXT    CHECK (reason IN ('answered-elsewhere', 'asker-gone', 'expired',
                                           'not-renewed', 'switched-off', 'undelivered')),
    message      TEXT,
    actor        TEXT,
    answered_at  INTEGER,
    -- The hook was told; null while the answer is on its way.
    delivered_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX bridge_prompts_instance ON bridge_prompts (instance_id);
CREATE INDEX bridge_prompts_answered ON bridge_prompts (answered_at);

PRAGMA user_version = 16;
