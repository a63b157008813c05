-- What a question offers to allow for the rest of its session, and whether that was chosen.
-- Times are milliseconds since the Unix epoch, booleans 0 or 1.

-- Rules and directories in the agent's notation, redacted, as a JSON array of texts.
ALTER TABLE hosted_prompts ADD COLUMN session_rules TEXT NOT NULL DEFAULT '[]';
ALTER TABLE hosted_prompts ADD COLUMN for_session INTEGER NOT NULL DEFAULT 0 CHECK (for_session IN (0, 1));

ALTER TABLE bridge_prompts ADD COLUMN session_rules TEXT NOT NULL DEFAULT '[]';
ALTER TABLE bridge_prompts ADD COLUMN for_session INTEGER NOT NULL DEFAULT 0 CHECK (for_session IN (0, 1));

PRAGMA user_version = 21;
