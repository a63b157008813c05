-- Direct Sessions and the prompts they ask.
-- Times are milliseconds since the Unix epoch, booleans 0 or 1.

CREATE TABLE hosted_sessions (
    instance_id     TEXT    PRIMARY KEY,
    -- The daemon's name of the current process, chosen by us before it is started.
    process_id      TEXT    NOT NULL UNIQUE,
    project         TEXT    NOT NULL,
    cwd             TEXT    NOT NULL,
    label           TEXT,
    permission_mode TEXT    NOT NULL,
    -- The agent's id of the conversation. A credential: it never leaves the store.
    session_uuid    TEXT,
    status          TEXT    NOT NULL CHECK (status IN
        ('starting', 'running', 'stopping', 'stopped', 'crashed', 'error')),
    status_since    INTEGER NOT NULL,
    generation      INTEGER NOT NULL CHECK (generation >= 1),
    agent_pid       INTEGER,
    agent_start_ticks INTEGER,
    agent_boot_id   TEXT,
    started_at      INTEGER,
    ended_at        INTEGER,
    exit_reason     TEXT,
    exit_code       INTEGER,
    exit_signal     INTEGER,
    error_detail    TEXT,
    intentional_stop INTEGER NOT NULL DEFAULT 0 CHECK (intentional_stop IN (0, 1)),
    -- Alive without a daemon that holds its pipes.
    is_orphan       INTEGER NOT NULL DEFAULT 0 CHECK (is_orphan IN (0, 1)),
    created_at      INTEGER NOT NULL,
    revision        INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

-- What an agent asks, and what was decided. A prompt is decided once.
CREATE TABLE hosted_prompts (
    instance_id  TEXT    NOT NULL REFERENCES hosted_sessions (instance_id) ON DELETE CASCADE,
    process_id   TEXT    NOT NULL,
    request_id   TEXT    NOT NULL,
    subtype      TEXT    NOT NULL,
    tool         TEXT,
    -- Redacted, and cut where it is long.
    summary      TEXT    NOT NULL,
    truncated    INTEGER NOT NULL CHECK (truncated IN (0, 1)),
    since        INTEGER NOT NULL,
    decision     TEXT    CHECK (decision IN ('allow', 'deny', 'interrupted', 'cancelled')),
    message      TEXT,
    actor        TEXT,
    answered_at  INTEGER,
    -- The agent was told; null while the answer is on its way.
    delivered_at INTEGER,
    PRIMARY KEY (process_id, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX hosted_prompts_answered ON hosted_prompts (answered_at);

PRAGMA user_version = 11;
