-- The cap on live bridges is counted in the transaction of every start: from this index, which holds
-- the live ones, and not from all rows that ever were.

CREATE INDEX live_bridges ON bridges (status) WHERE status IN ('starting', 'running');

PRAGMA user_version = 7;
