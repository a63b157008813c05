-- What a session does that stopped at a plan limit; null follows the configuration.
ALTER TABLE bridges ADD COLUMN on_limit TEXT CHECK (on_limit IN ('wait', 'continue'));
ALTER TABLE hosted_sessions ADD COLUMN on_limit TEXT CHECK (on_limit IN ('wait', 'continue'));

PRAGMA user_version = 15;
