-- What the report of an ended session needs and its record does not hold.
-- Times are milliseconds since the Unix epoch.

CREATE TABLE end_facts (
    instance_id    TEXT    NOT NULL,
    generation     INTEGER NOT NULL,
    -- Who asked for the stop, as the audit log names them, and when; null when nobody did.
    asked_by       TEXT,
    asked_at       INTEGER,
    -- The last sample before the end; null when the session was never measured.
    sampled_at     INTEGER,
    cpu_percent    REAL,
    rss_bytes      INTEGER,
    processes      INTEGER,
    -- The most memory that was measured, and when.
    peak_rss_bytes INTEGER,
    peak_at        INTEGER,
    PRIMARY KEY (instance_id, generation)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 13;
