-- Bridges, their history and what was announced of them.
-- Times are milliseconds since the Unix epoch, booleans 0 or 1.

CREATE TABLE projects (
    name       TEXT    NOT NULL PRIMARY KEY,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- `number` is the order of registration; lists follow it.
CREATE TABLE bridges (
    number           INTEGER PRIMARY KEY AUTOINCREMENT,
    instance_id      TEXT    NOT NULL UNIQUE,
    revision         INTEGER NOT NULL CHECK (revision >= 1),
    project          TEXT    NOT NULL REFERENCES projects (name),
    cwd              TEXT    NOT NULL,
    custom_name      TEXT,
    resume_mode      TEXT    NOT NULL CHECK (resume_mode IN ('standard', 'pty')),
    spawn_mode       TEXT    NOT NULL CHECK (spawn_mode IN ('same-dir', 'worktree', 'session')),
    permission_mode  TEXT    NOT NULL,
    origin           TEXT    NOT NULL CHECK (origin IN ('spawned', 'adopted', 'rediscovered')),
    generation       INTEGER NOT NULL CHECK (generation >= 1),
    status           TEXT    NOT NULL CHECK (status IN ('starting', 'running', 'stopped', 'crashed', 'error')),
    phase            TEXT    NOT NULL CHECK (phase IN ('launching', 'registering', 'ready', 'exited')),
    stop_requested   INTEGER NOT NULL DEFAULT 0 CHECK (stop_requested IN (0, 1)),
    intentional_stop INTEGER NOT NULL DEFAULT 0 CHECK (intentional_stop IN (0, 1)),
    forced           INTEGER NOT NULL DEFAULT 0 CHECK (forced IN (0, 1)),
    grace_deadline   INTEGER,
    status_since     INTEGER NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER,
    launch_id        TEXT,
    argv             TEXT,
    log_stem         TEXT,
    relaunched       INTEGER NOT NULL DEFAULT 0 CHECK (relaunched IN (0, 1)),
    bridge_pid       INTEGER,
    bridge_start_ticks INTEGER,
    bridge_boot_id   TEXT,
    environment_id   TEXT,
    session_id       TEXT,
    exit_reason      TEXT,
    exit_code        INTEGER,
    exit_signal      INTEGER,
    error_detail     TEXT,
    notice           TEXT,
    quarantine_code  TEXT,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    CHECK ((status IN ('starting', 'running')) = (phase <> 'exited')),
    CHECK ((status IN ('stopped', 'crashed', 'error')) = (ended_at IS NOT NULL)),
    CHECK ((status = 'running') = (phase = 'ready'))
) STRICT;

-- At most one live Server Mode bridge per project: the locks see to it, this proves it.
CREATE UNIQUE INDEX one_live_server_mode_bridge
    ON bridges (project)
    WHERE resume_mode = 'standard' AND status IN ('starting', 'running');

-- What changed since a reader last looked is answered from this index alone, without the rows.
CREATE INDEX bridges_by_revision ON bridges (revision);

CREATE TABLE session_events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    project      TEXT    NOT NULL REFERENCES projects (name) ON DELETE CASCADE,
    instance_id  TEXT    NOT NULL,
    mode         TEXT    NOT NULL CHECK (mode IN ('standard', 'pty', 'hosted')),
    kind         TEXT    NOT NULL CHECK (kind IN ('spawned', 'ready', 'ended', 'crashed')),
    at           INTEGER NOT NULL,
    session_ref  TEXT,
    exit_reason  TEXT
) STRICT;

CREATE INDEX session_events_by_project ON session_events (project, at);
CREATE INDEX session_events_by_time ON session_events (at);

-- A lifecycle event leaves once, whichever process saw it.
CREATE TABLE announcements (
    instance_id  TEXT    NOT NULL,
    generation   INTEGER NOT NULL,
    event        TEXT    NOT NULL CHECK (event IN ('spawn', 'ready', 'stop', 'crash')),
    at           INTEGER NOT NULL,
    PRIMARY KEY (instance_id, generation, event)
) STRICT, WITHOUT ROWID;

PRAGMA application_id = 1937072434;
PRAGMA user_version = 1;
