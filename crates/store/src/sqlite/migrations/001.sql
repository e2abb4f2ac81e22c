-- Records are JSON; the columns beside them are for conditions and order. Times are milliseconds
-- since 1970. Later migrations only add tables, columns with defaults and indexes. A version with a
-- new word for a status, a state or a choice raises min_reader.

CREATE TABLE meta (
  name TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT;

-- The number of migrations that a program must know at least to use this store.
INSERT INTO meta (name, value) VALUES ('min_reader', 1);

CREATE TABLE runs (
  id TEXT NOT NULL PRIMARY KEY,
  started INTEGER NOT NULL,
  record TEXT NOT NULL,
  user TEXT NOT NULL AS (record ->> '$.user'),
  owner TEXT NOT NULL AS (record ->> '$.owner'),
  status TEXT NOT NULL AS (record ->> '$.status')
) STRICT;

CREATE INDEX runs_started ON runs (started, id);
CREATE INDEX runs_running ON runs (owner) WHERE status = 'running';

CREATE TABLE calls (
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  ordinal INTEGER NOT NULL,
  record TEXT NOT NULL,
  function TEXT NOT NULL AS (record ->> '$.function'),
  tool TEXT NOT NULL AS (record ->> '$.tool'),
  PRIMARY KEY (run, ordinal)
) STRICT;

-- No foreign key to runs: a question is written at once, and the record of its run may lag.
CREATE TABLE questions (
  id TEXT NOT NULL PRIMARY KEY,
  asked INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  record TEXT NOT NULL,
  run TEXT NOT NULL AS (record ->> '$.run'),
  user TEXT NOT NULL AS (record ->> '$.user'),
  owner TEXT NOT NULL AS (record ->> '$.owner'),
  state TEXT NOT NULL AS (record ->> '$.state')
) STRICT;

CREATE INDEX questions_asked ON questions (asked, id);
CREATE INDEX questions_state ON questions (state, asked, id);
CREATE INDEX questions_run ON questions (run);

-- The bytes are in the file blobs/ab/abcdef….
CREATE TABLE blobs (
  hash TEXT NOT NULL,
  run TEXT NOT NULL,
  user TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  written INTEGER NOT NULL,
  PRIMARY KEY (hash, run, user)
) STRICT;

CREATE INDEX blobs_run ON blobs (run);
