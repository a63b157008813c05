-- Interactive Sessions, the restart policy, and what is done after a reboot.
-- Times are milliseconds since the Unix epoch, booleans 0 or 1.

-- The name of the git worktree that the session works in; null for the project's own directory.
ALTER TABLE bridges ADD COLUMN worktree_name TEXT;
-- The agent's id of the conversation that the session holds. A credential: it never leaves the store.
ALTER TABLE bridges ADD COLUMN conversation_id TEXT;

-- The process that holds the pseudo-terminal; null in Server Mode.
ALTER TABLE bridges ADD COLUMN keeper_pid INTEGER;
ALTER TABLE bridges ADD COLUMN keeper_start_ticks INTEGER;
ALTER TABLE bridges ADD COLUMN keeper_boot_id TEXT;

-- What is restarted without being asked; null follows the configuration.
ALTER TABLE bridges ADD COLUMN restart_policy TEXT
    CHECK (restart_policy IN ('never', 'on-crash', 'always'));
-- Restarts in a row; 0 after a stable run or a deliberate start.
ALTER TABLE bridges ADD COLUMN restart_attempt INTEGER NOT NULL DEFAULT 0
    CHECK (restart_attempt >= 0);
-- When the next restart begins; null when none is due.
ALTER TABLE bridges ADD COLUMN next_restart_at INTEGER;
-- Since when too many crashes have ended the automatic restarts.
ALTER TABLE bridges ADD COLUMN restart_quarantined_at INTEGER;
-- Times of the crashes that still count, as a JSON list.
ALTER TABLE bridges ADD COLUMN crash_times TEXT NOT NULL DEFAULT '[]';

-- What happens with a session that a reboot ended; null follows the configuration.
ALTER TABLE bridges ADD COLUMN after_reboot TEXT
    CHECK (after_reboot IN ('offer', 'resume', 'never'));
-- A restore was offered and declined for this generation.
ALTER TABLE bridges ADD COLUMN restore_declined INTEGER NOT NULL DEFAULT 0
    CHECK (restore_declined IN (0, 1));
-- What is done about a lost remote link; null follows the configuration.
ALTER TABLE bridges ADD COLUMN heal TEXT CHECK (heal IN ('off', 'notify', 'restart'));

-- Conversations that hung on a process that died: what is typed into them reaches nobody.
CREATE TABLE stranded_sessions (
    instance_id     TEXT    NOT NULL,
    generation      INTEGER NOT NULL,
    -- The agent's id of the conversation. A credential: it never leaves the store.
    conversation_id TEXT    NOT NULL,
    -- Its remote session, when it is known. A credential too.
    remote_session  TEXT,
    title           TEXT,
    found_at        INTEGER NOT NULL,
    state           TEXT    NOT NULL DEFAULT 'stranded'
        CHECK (state IN ('stranded', 'continued', 'dismissed')),
    -- The session that goes on with it.
    continued_as    TEXT,
    PRIMARY KEY (instance_id, conversation_id)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 8;
