-- The schema of Bronzeward. One migration until the first release (PA §11 rule 6):
-- a change edits the statement that creates what it changes.
--
-- Conventions
--   * An identifier that leaves the database is text of the form <prefix>_<26 base32>
--     and has a domain per prefix (PA §2). A `seq` is a bigint for ordering inside one
--     database state only.
--   * A table is immutable (insert only) or mutable; the two lists at the end give each
--     its triggers. Nothing is deleted (PA §3).
--   * A revision and a release record their writer, the full transaction id, and refuse
--     rows added by another transaction (PA §3).
--   * `principal_id` with `role` says who acted; `controller` with `owner_gen` says which
--     instance did; `epoch` is the recovery epoch it happened in (PA §12.1).
--   * SQLSTATE BW001: change of an immutable table, or a deletion. BW002: row under a
--     revision of another transaction. BW003: a check of PA §6.2 that is made at commit.
--     BW004: a value that may not move back moved back. Each names its trigger as the
--     constraint.

-- 1. Domains ---------------------------------------------------------------------------

-- 128 bits in 26 characters leave two zero bits in the last one.
CREATE DOMAIN cl_id  AS text CHECK (VALUE ~ '^cl_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN mch_id AS text CHECK (VALUE ~ '^mch_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN frv_id AS text CHECK (VALUE ~ '^frv_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN prv_id AS text CHECK (VALUE ~ '^prv_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN asr_id AS text CHECK (VALUE ~ '^asr_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN ibr_id AS text CHECK (VALUE ~ '^ibr_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN drf_id AS text CHECK (VALUE ~ '^drf_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN rel_id AS text CHECK (VALUE ~ '^rel_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN dep_id AS text CHECK (VALUE ~ '^dep_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN dal_id AS text CHECK (VALUE ~ '^dal_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN ep_id  AS text CHECK (VALUE ~ '^ep_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN pln_id AS text CHECK (VALUE ~ '^pln_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN apr_id AS text CHECK (VALUE ~ '^apr_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN op_id  AS text CHECK (VALUE ~ '^op_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN att_id AS text CHECK (VALUE ~ '^att_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN obs_id AS text CHECK (VALUE ~ '^obs_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN idn_id AS text CHECK (VALUE ~ '^idn_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN tok_id AS text CHECK (VALUE ~ '^tok_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN ing_id AS text CHECK (VALUE ~ '^ing_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN act_id AS text CHECK (VALUE ~ '^act_[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN req_id AS text CHECK (VALUE ~ '^req_[a-z2-7]{25}[aeimquy4]$');
-- A head: fragment, profile or assignment. One id order covers the three (PA §6.2).
CREATE DOMAIN head_id AS text CHECK (VALUE ~ '^(frg|prf|asg)_[a-z2-7]{25}[aeimquy4]$');

CREATE DOMAIN etag_token AS text CHECK (VALUE ~ '^[a-z2-7]{25}[aeimquy4]$');
CREATE DOMAIN sha256_digest AS bytea CHECK (octet_length(VALUE) = 32);
CREATE DOMAIN role_name AS text
    CHECK (VALUE IN ('viewer', 'author', 'publisher', 'approver', 'recovery-admin'));
CREATE DOMAIN layer_name AS text
    CHECK (VALUE IN ('global', 'site', 'cluster', 'role', 'workload', 'override'));
CREATE DOMAIN reference_kind AS text
    CHECK (VALUE IN ('string', 'integer', 'boolean', 'mapping'));
-- A logical secret name (IC §5.1).
CREATE DOMAIN reference_name AS text
    CHECK (VALUE ~ '^[a-z0-9]([a-z0-9-]*[a-z0-9])?(/[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$');
-- What Transit answers: the key version, then base64. Nothing else is a ciphertext.
CREATE DOMAIN transit_ciphertext AS text
    CHECK (VALUE ~ '^vault:v[1-9][0-9]{0,18}:[A-Za-z0-9+/]{38,}={0,2}$');
-- transit/<key>@v<N>, which key made a keyed digest (IC §4.1).
CREATE DOMAIN digest_key_ref AS text
    CHECK (VALUE ~ '^transit/[^/@]+@v[1-9][0-9]{0,18}$' AND octet_length(VALUE) <= 256);
-- Why somebody did it: not blank, at most 1024 bytes (PA §9.3).
CREATE DOMAIN reason_text AS text
    CHECK (VALUE ~ '\S' AND octet_length(VALUE) <= 1024);
-- <instance>/<process id>/<start token> (IC §3.2, EaR 3.4).
CREATE DOMAIN owner_text AS text
    CHECK (VALUE ~ '^[^/[:cntrl:]]+/[0-9]+/[^/[:cntrl:]]+$' AND octet_length(VALUE) <= 512);
-- How a record names the instance that acted: its name, or its whole owner string.
-- The length apart: a regular expression repeats at most 255 times.
CREATE DOMAIN controller_text AS text
    CHECK (VALUE ~ '^[[:graph:]]+$' AND length(VALUE) <= 512);

-- 2. Functions of the triggers ---------------------------------------------------------

CREATE FUNCTION bw_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'BW001', CONSTRAINT = TG_NAME;
END $$;

-- The database says who wrote a revision; a value given by the caller is ignored.
CREATE FUNCTION bw_stamp_writer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.writer := pg_current_xact_id();
    RETURN NEW;
END $$;

-- The argument names the parent table. The parent must be visible now and have been written
-- by this transaction. Plain statements per parent: a release of a thousand machines passes
-- here a hundred thousand times, and a dynamic one is planned anew each time.
CREATE FUNCTION bw_check_writer() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    wrote xid8;
BEGIN
    CASE TG_ARGV[0]
        WHEN 'release' THEN
            SELECT writer INTO wrote FROM release WHERE id = NEW.release_id;
        WHEN 'fragment_revision or import_base_revision' THEN
            IF NEW.revision_id LIKE 'frv\_%' THEN
                SELECT writer INTO wrote FROM fragment_revision WHERE id = NEW.revision_id;
            ELSE
                SELECT writer INTO wrote FROM import_base_revision WHERE id = NEW.revision_id;
            END IF;
        WHEN 'profile_revision' THEN
            SELECT writer INTO wrote FROM profile_revision WHERE id = NEW.profile_revision_id;
        WHEN 'assignment_revision' THEN
            SELECT writer INTO wrote FROM assignment_revision
             WHERE id = NEW.assignment_revision_id;
        WHEN 'recovery_epoch' THEN
            SELECT writer INTO wrote FROM recovery_epoch WHERE id = NEW.epoch;
        WHEN 'dependency_alert' THEN
            SELECT writer INTO wrote FROM dependency_alert WHERE id = NEW.alert_id;
    END CASE;
    IF wrote IS NULL THEN
        RAISE EXCEPTION 'a row of % for no visible %', TG_TABLE_NAME, TG_ARGV[0]
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_NAME;
    END IF;
    IF wrote <> pg_current_xact_id() THEN
        RAISE EXCEPTION 'a row of % for a % of another transaction', TG_TABLE_NAME, TG_ARGV[0]
            USING ERRCODE = 'BW002', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;

-- 3. Installation, epochs, principals --------------------------------------------------

CREATE TABLE schema_migrations (
    version    integer PRIMARY KEY CHECK (version > 0),
    name       text NOT NULL,
    checksum   sha256_digest NOT NULL,
    applied_at timestamptz NOT NULL
);
COMMENT ON TABLE schema_migrations IS 'PA §11: applied migrations. Immutable.';

CREATE TABLE principal (
    id          idn_id PRIMARY KEY,
    kind        text NOT NULL CHECK (kind IN ('human', 'service')),
    iss         text,
    sub         text,
    name        text,
    display     text,
    responsible idn_id REFERENCES principal (id),
    revoked     boolean NOT NULL DEFAULT false,
    revoked_at  timestamptz,
    created_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT principal_iss_sub_key UNIQUE (iss, sub),
    CONSTRAINT principal_name_key UNIQUE (name),
    CONSTRAINT principal_shape CHECK (
        CASE kind
            WHEN 'human' THEN iss <> '' AND sub <> '' AND iss IS NOT NULL
                 AND sub IS NOT NULL AND name IS NULL AND responsible IS NULL
            ELSE iss IS NULL AND sub IS NULL AND display IS NULL AND name IS NOT NULL
                 AND name <> '' AND responsible IS NOT NULL
        END),
    CONSTRAINT principal_revoked CHECK (revoked = (revoked_at IS NOT NULL))
);
COMMENT ON TABLE principal IS
    'PA §10: a human by (iss, sub), or a service identity by name with its responsible human. Mutable.';

CREATE TABLE recovery_epoch (
    id           ep_id PRIMARY KEY,
    origin       text NOT NULL CHECK (origin IN ('installation', 'entry')),
    entered_at   timestamptz NOT NULL,
    principal_id idn_id REFERENCES principal (id),
    role         role_name,
    reason       reason_text,
    stopped_at   timestamptz,
    act_id       act_id,
    writer       xid8 NOT NULL,
    CONSTRAINT recovery_epoch_shape CHECK (
        CASE origin
            WHEN 'entry' THEN num_nulls(principal_id, role, reason, stopped_at, act_id) = 0
                 AND stopped_at <= entered_at
            ELSE num_nonnulls(principal_id, role, reason, stopped_at, act_id) = 0
        END)
);
COMMENT ON TABLE recovery_epoch IS
    'PA §12.1: the installation''s epoch and one per recovery entry. Compared by equality only. Immutable.';

CREATE TABLE restored_backup (
    epoch    ep_id NOT NULL REFERENCES recovery_epoch (id),
    family   text NOT NULL CHECK (family IN ('database', 'provider', 'credential-store')),
    backup   text NOT NULL CHECK (backup <> ''),
    taken_at timestamptz NOT NULL,
    PRIMARY KEY (epoch, family)
);
COMMENT ON TABLE restored_backup IS
    'PA §12.1: the backup families an entry names, each at most once. Immutable.';

CREATE TABLE installation_state (
    singleton      boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    current_epoch  ep_id NOT NULL REFERENCES recovery_epoch (id),
    recovery_mode  boolean NOT NULL,
    schema_version integer NOT NULL,
    cursor_key     bytea NOT NULL CHECK (octet_length(cursor_key) = 32)
);
COMMENT ON TABLE installation_state IS
    'PA §12.1: one row; current epoch, recovery mode, and the key that cursors are sealed with. Mutable.';

CREATE TABLE act (
    id              act_id PRIMARY KEY,
    seq             bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    principal_id    idn_id NOT NULL REFERENCES principal (id),
    principal_kind  text NOT NULL CHECK (principal_kind IN ('human', 'service')),
    role            role_name,
    action          text NOT NULL CHECK (action <> ''),
    subjects        jsonb NOT NULL CHECK (jsonb_typeof(subjects) = 'array'),
    idempotency_key text,
    request_id      req_id,
    epoch           ep_id NOT NULL REFERENCES recovery_epoch (id),
    at              timestamptz NOT NULL,
    -- Only the operator's own tool acts without a request, and it has no role.
    CONSTRAINT act_request CHECK (num_nonnulls(role, idempotency_key, request_id) IN (0, 3))
);
COMMENT ON TABLE act IS
    'PA §10.5: every mutating act. seq is given under the act-order lock, so it is commit order. Immutable.';

ALTER TABLE recovery_epoch ADD FOREIGN KEY (act_id) REFERENCES act (id)
    DEFERRABLE INITIALLY DEFERRED;

CREATE TABLE recovery_exit (
    epoch        ep_id PRIMARY KEY REFERENCES recovery_epoch (id),
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL,
    facts        jsonb NOT NULL CHECK (jsonb_typeof(facts) = 'object'),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL
);
COMMENT ON TABLE recovery_exit IS 'PA §9.2, §12.2: the end of an epoch''s recovery mode. Immutable.';

CREATE TABLE automation_token (
    id            tok_id PRIMARY KEY,
    principal_id  idn_id NOT NULL REFERENCES principal (id),
    secret_sha256 sha256_digest NOT NULL,
    roles         text[] NOT NULL,
    epoch         ep_id NOT NULL REFERENCES recovery_epoch (id),
    issued_at     timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    revoked_at    timestamptz,
    -- No automation holds approver or recovery-admin (PA §15 invariant 12).
    CONSTRAINT automation_token_roles_check CHECK (
        cardinality(roles) BETWEEN 1 AND 3
        AND roles <@ ARRAY['viewer', 'author', 'publisher']
        AND array_position(roles, NULL) IS NULL),
    CONSTRAINT automation_token_expiry CHECK (
        expires_at > issued_at AND expires_at <= issued_at + interval '90 days')
);
CREATE UNIQUE INDEX automation_token_unrevoked ON automation_token (principal_id)
    WHERE revoked_at IS NULL;
COMMENT ON TABLE automation_token IS
    'PA §10.2: the digest of a service identity''s token; one unrevoked per identity. Mutable.';

-- 4. Inventory -------------------------------------------------------------------------

CREATE TABLE cluster (
    id               cl_id PRIMARY KEY,
    name             text NOT NULL CHECK (name <> ''),
    endpoint         text NOT NULL CHECK (endpoint <> ''),
    talos_cluster_id text NOT NULL CHECK (talos_cluster_id ~ '^[A-Za-z0-9_-]{43}=$'),
    contract         text NOT NULL CHECK (contract ~ '^v[0-9]+\.[0-9]+$'),
    status           text NOT NULL DEFAULT 'active' CHECK (status IN ('active')),
    revision         bigint NOT NULL DEFAULT 1 CHECK (revision > 0),
    created_by       idn_id NOT NULL REFERENCES principal (id),
    created_role     role_name NOT NULL,
    epoch            ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT cluster_talos_cluster_id_key UNIQUE (talos_cluster_id)
);
COMMENT ON TABLE cluster IS 'PA §3, §7.3. Mutable, revisioned.';

CREATE TABLE rollout (
    cluster_id cl_id PRIMARY KEY REFERENCES cluster (id)
);
COMMENT ON TABLE rollout IS
    'PA §5 rule 5: the row a commitment locks after its operation; made with its cluster. Mutable, never written.';

-- Without the row a commitment would lock nothing, so it is made here and not by callers.
CREATE FUNCTION bw_add_rollout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rollout (cluster_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER cluster_rollout AFTER INSERT ON cluster
    FOR EACH ROW EXECUTE FUNCTION bw_add_rollout();

CREATE TABLE machine (
    id               mch_id PRIMARY KEY,
    cluster_id       cl_id NOT NULL REFERENCES cluster (id),
    smbios_uuid      text CHECK (smbios_uuid ~
                         '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
    talos_node_id    text CHECK (talos_node_id <> ''),
    serial           text,
    talos_endpoint   text NOT NULL CHECK (talos_endpoint ~ '^([0-9.]+|\[[0-9a-f:.]+\]):[0-9]{1,5}$'),
    platform         text NOT NULL CHECK (platform IN ('metal', 'container', 'cloud')),
    frozen           boolean NOT NULL DEFAULT false,
    scope_state      text NOT NULL DEFAULT 'normal' CHECK (scope_state IN
                         ('normal', 'pre-restore-unaccounted', 'unresolved', 'blocked',
                          'ready', 'released', 'retired')),
    scope_epoch      ep_id REFERENCES recovery_epoch (id),
    revision_counter bigint NOT NULL DEFAULT 0 CHECK (revision_counter >= 0),
    revision         bigint NOT NULL DEFAULT 1 CHECK (revision > 0),
    created_by       idn_id NOT NULL REFERENCES principal (id),
    created_role     role_name NOT NULL,
    epoch            ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT machine_one_identity_key CHECK (num_nonnulls(smbios_uuid, talos_node_id) = 1),
    CONSTRAINT machine_smbios_uuid_key UNIQUE (smbios_uuid),
    CONSTRAINT machine_talos_node_id_key UNIQUE (talos_node_id),
    CONSTRAINT machine_scope_epoch CHECK (scope_state = 'normal' OR scope_epoch IS NOT NULL),
    UNIQUE (cluster_id, id)
);
COMMENT ON TABLE machine IS
    'PA §3, §7.3: identity key, endpoint, freeze and scope state (of scope_epoch), and the counter that orders the machine''s timeline (T7). Mutable, revisioned.';

CREATE TABLE machine_endpoint_change (
    machine_id   mch_id NOT NULL REFERENCES machine (id),
    revision     bigint NOT NULL,
    previous     text NOT NULL,
    current      text NOT NULL,
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL,
    PRIMARY KEY (machine_id, revision)
);
COMMENT ON TABLE machine_endpoint_change IS 'PA §3.3. Immutable.';

-- 5. Drafts, revisions, heads ----------------------------------------------------------

CREATE TABLE draft (
    id           drf_id PRIMARY KEY,
    cluster_id   cl_id NOT NULL REFERENCES cluster (id),
    title        text NOT NULL,
    state        text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'published', 'discarded')),
    revision     bigint NOT NULL DEFAULT 1 CHECK (revision > 0),
    etag_token   etag_token NOT NULL,
    release_id   rel_id,
    created_by   idn_id NOT NULL REFERENCES principal (id),
    created_role role_name NOT NULL,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at   timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT draft_published CHECK ((state = 'published') = (release_id IS NOT NULL)),
    UNIQUE (cluster_id, id)
);
COMMENT ON TABLE draft IS 'PA §3.1, §4. Mutable, revisioned.';

CREATE TABLE staging_claim (
    id              ing_id PRIMARY KEY,
    kind            text NOT NULL CHECK (kind IN ('import', 'drift-adoption', 'draft-update')),
    mode            text NOT NULL CHECK (mode IN ('transient', 'encrypted')),
    source          text NOT NULL CHECK (source IN ('machine', 'document')),
    state           text NOT NULL CHECK (state IN ('held', 'paused', 'resumed', 'released', 'abandoned')),
    review          text CHECK (review IN ('pending', 'continued')),
    cluster_id      cl_id NOT NULL REFERENCES cluster (id),
    draft_id        drf_id NOT NULL REFERENCES draft (id),
    machine_id      mch_id REFERENCES machine (id),
    drift_revision  bigint,
    principal_id    idn_id NOT NULL REFERENCES principal (id),
    role            role_name NOT NULL,
    idempotency_key text,
    owner           owner_text NOT NULL,
    owner_gen       bigint NOT NULL CHECK (owner_gen > 0),
    owner_epoch     ep_id NOT NULL REFERENCES recovery_epoch (id),
    epoch           ep_id NOT NULL REFERENCES recovery_epoch (id),
    lease_until     timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    created_at      timestamptz NOT NULL,
    payload         transit_ciphertext,
    payload_digest  sha256_digest,
    CONSTRAINT staging_claim_subject CHECK (
        CASE kind
            WHEN 'draft-update' THEN machine_id IS NULL AND idempotency_key IS NOT NULL
                 AND mode = 'transient' AND source = 'document'
            ELSE machine_id IS NOT NULL AND idempotency_key IS NULL
        END),
    CONSTRAINT staging_claim_drift CHECK (
        (kind = 'drift-adoption') = (drift_revision IS NOT NULL)
        AND (kind <> 'drift-adoption' OR source = 'machine')),
    CONSTRAINT staging_claim_times CHECK (expires_at > created_at),
    -- The payload is cleared with the claim's end, and never there without its digest.
    CONSTRAINT staging_claim_payload CHECK (
        num_nonnulls(payload, payload_digest) IN (0, 2)
        AND (payload IS NULL OR (mode = 'encrypted' AND state IN ('held', 'paused', 'resumed')))),
    CONSTRAINT staging_claim_review CHECK (review IS NULL OR mode = 'encrypted'),
    CONSTRAINT staging_claim_resumed CHECK (state <> 'resumed' OR mode = 'encrypted'),
    CONSTRAINT staging_claim_paused CHECK (
        state <> 'paused' OR (review = 'pending' AND payload IS NOT NULL)),
    FOREIGN KEY (cluster_id, draft_id) REFERENCES draft (cluster_id, id),
    FOREIGN KEY (cluster_id, machine_id) REFERENCES machine (cluster_id, id)
);
CREATE UNIQUE INDEX staging_claim_live_key ON staging_claim (principal_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND state IN ('held', 'paused', 'resumed');
CREATE INDEX staging_claim_live ON staging_claim (lease_until)
    WHERE state IN ('held', 'paused', 'resumed');
COMMENT ON TABLE staging_claim IS
    'IC §3, PA §7.2: the one ownership of an ingestion; payload is ciphertext of the staging key. Mutable, fenced.';

CREATE TABLE fragment_revision (
    id              frv_id PRIMARY KEY,
    cluster_id      cl_id NOT NULL REFERENCES cluster (id),
    name            text NOT NULL CHECK (name <> ''),
    layer           layer_name NOT NULL,
    document        text NOT NULL,
    document_sha256 sha256_digest NOT NULL,
    canonical       text NOT NULL,
    embedded        jsonb NOT NULL CHECK (jsonb_typeof(embedded) = 'array'),
    draft_id        drf_id NOT NULL REFERENCES draft (id),
    claim_id        ing_id NOT NULL REFERENCES staging_claim (id),
    author_id       idn_id NOT NULL REFERENCES principal (id),
    author_role     role_name NOT NULL,
    epoch           ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at      timestamptz NOT NULL DEFAULT now(),
    writer          xid8 NOT NULL,
    CONSTRAINT fragment_revision_sha256 CHECK (document_sha256 = sha256(convert_to(document, 'UTF8')))
);
CREATE INDEX fragment_revision_name ON fragment_revision (cluster_id, name);
COMMENT ON TABLE fragment_revision IS
    'PA §3, IC §5: sanitized text, its canonical form, embedded identifications; reference rows beside it. Immutable.';

CREATE TABLE profile_revision (
    id          prv_id PRIMARY KEY,
    cluster_id  cl_id NOT NULL REFERENCES cluster (id),
    name        text NOT NULL CHECK (name <> ''),
    draft_id    drf_id NOT NULL REFERENCES draft (id),
    author_id   idn_id NOT NULL REFERENCES principal (id),
    author_role role_name NOT NULL,
    epoch       ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at  timestamptz NOT NULL DEFAULT now(),
    writer      xid8 NOT NULL
);
CREATE INDEX profile_revision_name ON profile_revision (cluster_id, name);
COMMENT ON TABLE profile_revision IS 'PA §3.1. Immutable.';

CREATE TABLE profile_pin (
    profile_revision_id  prv_id NOT NULL REFERENCES profile_revision (id),
    position             integer NOT NULL CHECK (position >= 0),
    fragment_revision_id frv_id NOT NULL REFERENCES fragment_revision (id),
    PRIMARY KEY (profile_revision_id, position)
);
COMMENT ON TABLE profile_pin IS 'PA §3.1: the fragment revisions a profile pins, in order. Immutable.';

CREATE TABLE assignment_revision (
    id          asr_id PRIMARY KEY,
    cluster_id  cl_id NOT NULL,
    machine_id  mch_id NOT NULL,
    draft_id    drf_id NOT NULL REFERENCES draft (id),
    author_id   idn_id NOT NULL REFERENCES principal (id),
    author_role role_name NOT NULL,
    epoch       ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at  timestamptz NOT NULL DEFAULT now(),
    writer      xid8 NOT NULL,
    FOREIGN KEY (cluster_id, machine_id) REFERENCES machine (cluster_id, id)
);
CREATE INDEX assignment_revision_machine ON assignment_revision (machine_id);
COMMENT ON TABLE assignment_revision IS 'PA §3.1. Immutable.';

CREATE TABLE assignment_profile (
    assignment_revision_id asr_id NOT NULL REFERENCES assignment_revision (id),
    position               integer NOT NULL CHECK (position >= 0),
    name                   text NOT NULL CHECK (name <> ''),
    PRIMARY KEY (assignment_revision_id, position),
    UNIQUE (assignment_revision_id, name)
);
COMMENT ON TABLE assignment_profile IS 'PA §3.1: selected profiles by name, in order. Immutable.';

CREATE TABLE assignment_fragment (
    assignment_revision_id asr_id NOT NULL REFERENCES assignment_revision (id),
    layer                  layer_name NOT NULL,
    position               integer NOT NULL CHECK (position >= 0),
    name                   text NOT NULL CHECK (name <> ''),
    PRIMARY KEY (assignment_revision_id, layer, position)
);
COMMENT ON TABLE assignment_fragment IS
    'PA §3.1: selected fragments by name, in order within a layer. Immutable.';

CREATE TABLE import_base_revision (
    id                    ibr_id PRIMARY KEY,
    cluster_id            cl_id NOT NULL,
    machine_id            mch_id NOT NULL,
    kind                  text NOT NULL CHECK (kind IN ('import', 'drift-adoption')),
    document              text NOT NULL,
    document_sha256       sha256_digest NOT NULL,
    canonical             text NOT NULL,
    embedded              jsonb NOT NULL CHECK (jsonb_typeof(embedded) = 'array'),
    baseline_ciphertext   transit_ciphertext NOT NULL,
    baseline_keyed_digest sha256_digest NOT NULL,
    baseline_digest_key   digest_key_ref NOT NULL,
    configuration_digest  sha256_digest NOT NULL,
    draft_id              drf_id NOT NULL REFERENCES draft (id),
    claim_id              ing_id NOT NULL REFERENCES staging_claim (id),
    author_id             idn_id NOT NULL REFERENCES principal (id),
    author_role           role_name NOT NULL,
    epoch                 ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at            timestamptz NOT NULL DEFAULT now(),
    writer                xid8 NOT NULL,
    CONSTRAINT import_base_revision_sha256
        CHECK (document_sha256 = sha256(convert_to(document, 'UTF8'))),
    FOREIGN KEY (cluster_id, machine_id) REFERENCES machine (cluster_id, id)
);
CREATE INDEX import_base_revision_machine ON import_base_revision (machine_id);
COMMENT ON TABLE import_base_revision IS 'PA §3.2, IC §2.3. Immutable.';

CREATE TABLE reference_row (
    revision_id     text NOT NULL,
    name            reference_name NOT NULL,
    kind            reference_kind NOT NULL,
    version         bigint NOT NULL CHECK (version > 0),
    encoding        text CHECK (encoding IN ('base64')),
    cluster_id      cl_id NOT NULL REFERENCES cluster (id),
    generation_path text NOT NULL,
    keyed_digest    sha256_digest NOT NULL,
    digest_key      digest_key_ref NOT NULL,
    fragment_revision_id frv_id GENERATED ALWAYS AS
        (CASE WHEN revision_id LIKE 'frv\_%' THEN revision_id END) STORED
        REFERENCES fragment_revision (id),
    import_base_revision_id ibr_id GENERATED ALWAYS AS
        (CASE WHEN revision_id LIKE 'ibr\_%' THEN revision_id END) STORED
        REFERENCES import_base_revision (id),
    PRIMARY KEY (revision_id, name),
    CONSTRAINT reference_row_revision CHECK (revision_id ~ '^(frv|ibr)_'),
    CONSTRAINT reference_row_encoding CHECK (encoding IS NULL OR kind = 'string'),
    -- gen/<cluster>/<claim>/<value id> (PA §6.4); the cluster is the row's own.
    CONSTRAINT reference_row_path CHECK (
        generation_path ~ '^gen/cl_[a-z2-7]{26}/ing_[a-z2-7]{26}/[a-z0-9_]{26,40}$'
        AND split_part(generation_path, '/', 2) = cluster_id)
);
CREATE INDEX reference_row_name ON reference_row (cluster_id, name, version);
CREATE INDEX reference_row_generation ON reference_row (generation_path);
COMMENT ON TABLE reference_row IS
    'IC §5.2, §4.1: a fragment or import base revision''s declared reference and its generation. revision_id is frv or ibr. Immutable.';

CREATE TABLE head (
    id            head_id PRIMARY KEY,
    kind          text NOT NULL CHECK (kind IN ('fragment', 'profile', 'assignment')),
    cluster_id    cl_id NOT NULL REFERENCES cluster (id),
    subject       text NOT NULL CHECK (subject <> ''),
    layer         layer_name,
    revision_id   text,
    head_revision bigint NOT NULL DEFAULT 1 CHECK (head_revision > 0),
    etag_token    etag_token NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    machine_id    mch_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'assignment' THEN subject END) STORED REFERENCES machine (id),
    fragment_revision_id frv_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'fragment' THEN revision_id END) STORED
        REFERENCES fragment_revision (id),
    profile_revision_id prv_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'profile' THEN revision_id END) STORED
        REFERENCES profile_revision (id),
    assignment_revision_id asr_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'assignment' THEN revision_id END) STORED
        REFERENCES assignment_revision (id),
    CONSTRAINT head_name_key UNIQUE (kind, cluster_id, subject),
    CONSTRAINT head_kind_prefix CHECK (left(id, 4) = CASE kind
        WHEN 'fragment' THEN 'frg_' WHEN 'profile' THEN 'prf_' ELSE 'asg_' END),
    CONSTRAINT head_layer CHECK ((kind = 'fragment') = (layer IS NOT NULL))
);
CREATE UNIQUE INDEX head_machine_key ON head (machine_id) WHERE machine_id IS NOT NULL;
COMMENT ON TABLE head IS
    'PA §3.1: fragment, profile (subject is the name) and assignment (subject is the machine) heads; revision_id NULL once removed. Cluster scope only. Mutable, revisioned.';

CREATE TABLE draft_entry (
    draft_id    drf_id NOT NULL REFERENCES draft (id),
    kind        text NOT NULL CHECK (kind IN ('import-base', 'fragment', 'profile', 'assignment')),
    subject     text NOT NULL CHECK (subject <> ''),
    head_id     head_id REFERENCES head (id),
    base        bigint CHECK (base > 0),
    revision_id text,
    machine_id  mch_id GENERATED ALWAYS AS
        (CASE WHEN kind IN ('import-base', 'assignment') THEN subject END) STORED
        REFERENCES machine (id),
    fragment_revision_id frv_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'fragment' THEN revision_id END) STORED
        REFERENCES fragment_revision (id),
    profile_revision_id prv_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'profile' THEN revision_id END) STORED
        REFERENCES profile_revision (id),
    assignment_revision_id asr_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'assignment' THEN revision_id END) STORED
        REFERENCES assignment_revision (id),
    import_base_revision_id ibr_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'import-base' THEN revision_id END) STORED
        REFERENCES import_base_revision (id),
    PRIMARY KEY (draft_id, kind, subject),
    CONSTRAINT draft_entry_base CHECK (num_nonnulls(head_id, base) IN (0, 2)),
    CONSTRAINT draft_entry_import_base CHECK (
        kind <> 'import-base' OR (head_id IS NULL AND revision_id IS NOT NULL))
);
COMMENT ON TABLE draft_entry IS
    'PA §3.1: what a draft proposes per name or machine; revision_id NULL is a removal, head_id and base NULL a base of "absent". Mutable under the draft.';

-- 6. Operations and timeline -----------------------------------------------------------

CREATE TABLE operation (
    id               op_id PRIMARY KEY,
    seq              bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    kind             text NOT NULL CHECK (kind IN ('publish', 'ingest', 'apply-config', 'adopt')),
    state            text NOT NULL,
    owner            owner_text,
    owner_gen        bigint NOT NULL DEFAULT 0 CHECK (owner_gen >= 0),
    owner_epoch      ep_id REFERENCES recovery_epoch (id),
    lease_until      timestamptz,
    cluster_id       cl_id NOT NULL REFERENCES cluster (id),
    machine_id       mch_id REFERENCES machine (id),
    plan_id          pln_id,
    draft_id         drf_id REFERENCES draft (id),
    draft_revision   bigint,
    claim_id         ing_id REFERENCES staging_claim (id),
    classification   text CHECK (classification IN ('safe-to-retry')),
    classified_revision bigint,
    classified_gen   bigint,
    retired          boolean NOT NULL DEFAULT false,
    last_event       bigint NOT NULL DEFAULT 0 CHECK (last_event >= 0),
    result_release   rel_id,
    result_import_base ibr_id REFERENCES import_base_revision (id),
    error            jsonb,
    created_by       idn_id REFERENCES principal (id),
    created_role     role_name,
    epoch            ep_id NOT NULL REFERENCES recovery_epoch (id),
    created_at       timestamptz NOT NULL,
    CONSTRAINT operation_state CHECK (CASE kind
        WHEN 'publish' THEN state IN ('queued', 'running', 'succeeded', 'failed')
        WHEN 'ingest'  THEN state IN ('running', 'succeeded', 'failed')
        WHEN 'adopt'   THEN state = 'completed'
        ELSE state IN ('committed', 'sending', 'verifying', 'completed', 'rejected',
                       'failed', 'cancelled', 'unresolved') END),
    CONSTRAINT operation_subject CHECK (CASE kind
        WHEN 'publish' THEN num_nulls(draft_id, draft_revision, created_by, created_role) = 0
             AND num_nonnulls(machine_id, plan_id, claim_id) = 0
        WHEN 'ingest' THEN num_nulls(draft_id, draft_revision, machine_id, claim_id,
                                     created_by, created_role) = 0 AND plan_id IS NULL
        ELSE num_nulls(machine_id, plan_id) = 0
             AND num_nonnulls(draft_id, draft_revision, claim_id) = 0 END),
    CONSTRAINT operation_owner CHECK (
        num_nonnulls(owner, owner_epoch) IN (0, 2)
        AND (owner IS NULL OR owner_gen > 0)
        AND (state NOT IN ('running', 'committed', 'sending', 'verifying', 'unresolved')
             OR (owner IS NOT NULL AND lease_until IS NOT NULL))),
    CONSTRAINT operation_classification CHECK (
        num_nonnulls(classification, classified_revision, classified_gen) IN (0, 3)
        AND (classification IS NULL OR state = 'unresolved')),
    CONSTRAINT operation_outcome CHECK (
        (kind NOT IN ('publish', 'ingest') OR (state = 'failed') = (error IS NOT NULL))
        AND (result_release IS NOT NULL) = (kind = 'publish' AND state = 'succeeded')
        AND (result_import_base IS NOT NULL) = (kind = 'ingest' AND state = 'succeeded'))
);
CREATE UNIQUE INDEX operation_plan_key ON operation (plan_id) WHERE plan_id IS NOT NULL;
CREATE UNIQUE INDEX operation_claim_key ON operation (claim_id) WHERE claim_id IS NOT NULL;
CREATE UNIQUE INDEX operation_scope_holder ON operation (machine_id)
    WHERE state IN ('committed', 'sending', 'verifying', 'unresolved') AND NOT retired;
CREATE UNIQUE INDEX operation_rollout_holder ON operation (cluster_id)
    WHERE state IN ('committed', 'sending', 'verifying', 'unresolved') AND NOT retired;
CREATE UNIQUE INDEX operation_active_publish ON operation (draft_id, draft_revision)
    WHERE kind = 'publish' AND state IN ('queued', 'running');
CREATE UNIQUE INDEX operation_active_ingest ON operation (draft_id, draft_revision)
    WHERE kind = 'ingest' AND state = 'running';
CREATE INDEX operation_machine ON operation (machine_id);
CREATE INDEX operation_job ON operation (seq)
    WHERE kind = 'publish' AND state IN ('queued', 'running');
COMMENT ON TABLE operation IS
    'PA §8, EaR 4: the four kinds. A retired one is of a decommissioned machine (EaR 7.3) and holds nothing. Mutable projection, fenced.';

CREATE TABLE timeline_event (
    seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine_id   mch_id REFERENCES machine (id),
    operation_id op_id REFERENCES operation (id),
    number       bigint NOT NULL CHECK (number > 0),
    kind         text NOT NULL,
    plan_id      pln_id,
    principal_id idn_id REFERENCES principal (id),
    role         role_name,
    controller   controller_text,
    owner_gen    bigint,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL,
    data         jsonb NOT NULL CHECK (jsonb_typeof(data) = 'object'),
    CONSTRAINT timeline_event_actor CHECK (
        num_nonnulls(principal_id, controller) >= 1
        AND num_nonnulls(principal_id, role) IN (0, 2)),
    CONSTRAINT timeline_event_kind CHECK (CASE
        WHEN machine_id IS NOT NULL THEN kind IN (
            'plan', 'approval', 'approval-revocation', 'identity-revocation', 'cancellation',
            'observation-started', 'observation', 'use-time-check', 'commitment', 'refusal',
            'attempt', 'response', 'ownership-transition', 'accounting', 'classification',
            'operation-state', 'applied-change', 'drift-opened', 'drift-extended',
            'drift-closed', 'freeze', 'unfreeze', 'adoption-record', 'endpoint-change',
            'recovery-entry', 'scope-state', 'scope-release', 'decommission')
        ELSE operation_id IS NOT NULL AND kind IN (
            'queued', 'claimed', 'started', 'talos-access', 'staged', 'taken-over',
            'resume-failed', 'paused', 'marked', 'mark-refused', 'continued',
            'succeeded', 'failed') END)
);
CREATE UNIQUE INDEX timeline_event_machine_key ON timeline_event (machine_id, number)
    WHERE machine_id IS NOT NULL;
CREATE UNIQUE INDEX timeline_event_job_key ON timeline_event (operation_id, number)
    WHERE machine_id IS NULL;
CREATE INDEX timeline_event_operation ON timeline_event (operation_id, number);
COMMENT ON TABLE timeline_event IS
    'PA §5 T7, EaR 4.1: entries of a machine scope (number is the machine revision), or of a publish or ingest operation (number is the event number, machine_id NULL). Immutable.';

-- 7. Observations ----------------------------------------------------------------------

CREATE TABLE observation_start (
    id                     obs_id PRIMARY KEY,
    machine_id             mch_id NOT NULL REFERENCES machine (id),
    basis                  bigint NOT NULL,
    purpose                text NOT NULL CHECK (purpose IN
                               ('publication', 'evidence', 'completion', 'recovery', 'drift', 'restoration')),
    plan_id                pln_id,
    operation_id           op_id REFERENCES operation (id),
    publication_generation bigint,
    endpoint               text NOT NULL,
    baseline_revision      bigint,
    assignment_head_id     head_id,
    assignment_head_revision bigint,
    controller             owner_text NOT NULL,
    epoch                  ep_id NOT NULL REFERENCES recovery_epoch (id),
    started_at             timestamptz NOT NULL,
    UNIQUE (machine_id, basis),
    UNIQUE (machine_id, id),
    CONSTRAINT observation_start_publication CHECK (
        (purpose = 'publication') = (publication_generation IS NOT NULL)
        AND (purpose <> 'publication' OR (operation_id IS NOT NULL AND plan_id IS NULL)))
);
CREATE INDEX observation_start_drift ON observation_start (machine_id, started_at)
    WHERE purpose = 'drift';
COMMENT ON TABLE observation_start IS
    'PA §6.1.1, EaR 4.1: recorded before the remote read; basis is the revision of its started entry. Immutable.';

CREATE TABLE observation (
    id                      obs_id PRIMARY KEY REFERENCES observation_start (id),
    machine_id              mch_id NOT NULL,
    revision                bigint NOT NULL,
    access_path             text,
    access_version          bigint,
    access_created          text,
    smbios_uuid             text,
    talos_node_id           text,
    talos_cluster_id        text,
    running_version         text,
    configuration_digest    sha256_digest,
    configuration_version   text,
    configuration_created   text,
    health_stage            text,
    health_ready            boolean,
    unread                  jsonb NOT NULL CHECK (jsonb_typeof(unread) = 'object'),
    recorded_at             timestamptz NOT NULL,
    UNIQUE (machine_id, revision),
    FOREIGN KEY (machine_id, id) REFERENCES observation_start (machine_id, id),
    CONSTRAINT observation_access CHECK (
        num_nonnulls(access_path, access_version, access_created) IN (0, 3)),
    -- A failed access read records no node value.
    CONSTRAINT observation_without_access CHECK (access_path IS NOT NULL OR num_nonnulls(
        smbios_uuid, talos_node_id, talos_cluster_id, running_version, configuration_digest,
        configuration_version, configuration_created, health_stage, health_ready) = 0)
);
COMMENT ON TABLE observation IS
    'PA §3, EaR 1, 4.1: what was read; unread maps each part that was not to its cause (a code, never a peer''s text). Immutable.';

-- 8. Releases --------------------------------------------------------------------------

CREATE TABLE dependency_status (
    id                  dep_id PRIMARY KEY,
    provider            text NOT NULL CHECK (provider IN ('kv', 'transit')),
    provider_object     text NOT NULL CHECK (provider_object <> ''),
    version             bigint NOT NULL CHECK (version > 0),
    created             text NOT NULL CHECK (created <> ''),
    class               text NOT NULL CHECK (class IN ('retained', 'blocked', 'lost', 'unknown')),
    reason              text,
    first_retained_at   timestamptz,
    unknown_since       timestamptz,
    persistent_alert_at timestamptz,
    scheduled_deletion  text,
    warned_deletion     text,
    observed_from       timestamptz NOT NULL,
    recorded_at         timestamptz NOT NULL,
    answer_date         timestamptz,
    CONSTRAINT dependency_status_identity_key UNIQUE (provider_object, version, created),
    CONSTRAINT dependency_status_provider CHECK ((provider = 'kv') = (provider_object LIKE '%/%')),
    CONSTRAINT dependency_status_times CHECK (recorded_at >= observed_from),
    CONSTRAINT dependency_status_unknown CHECK ((class = 'unknown') = (unknown_since IS NOT NULL)),
    CONSTRAINT dependency_status_reason CHECK (CASE class
        WHEN 'retained' THEN reason IS NULL OR reason = 'deletion-scheduled'
        WHEN 'blocked' THEN reason IS NOT NULL
             AND reason IN ('soft-deleted', 'below-decryption-floor')
        WHEN 'lost' THEN reason IS NOT NULL AND reason IN ('destroyed', 'pruned', 'trimmed')
        ELSE reason IS NOT NULL AND reason IN (
            'malformed', 'denied', 'absent', 'unavailable', 'unreachable', 'unreadable',
            'insufficient-evidence', 'identity-mismatch', 'deletion-time-undecidable',
            'soft-delete-unobserved', 'trimmed-unverified',
            'below-decryption-floor-unverified') END)
);
-- A KV version holds one creation time; another one is refused (DM §5).
CREATE UNIQUE INDEX dependency_status_kv_key ON dependency_status (provider_object, version)
    WHERE provider = 'kv';
COMMENT ON TABLE dependency_status IS
    'DM §5: latest class of one provider object version under its identity; a KV object is a path, a Transit one a key name. Mutable under its row lock.';

CREATE TABLE release (
    id                 rel_id PRIMARY KEY,
    cluster_id         cl_id NOT NULL REFERENCES cluster (id),
    draft_id           drf_id NOT NULL REFERENCES draft (id),
    draft_revision     bigint NOT NULL,
    operation_id       op_id NOT NULL REFERENCES operation (id),
    digest             sha256_digest NOT NULL,
    contract           text NOT NULL,
    machinery_version  text NOT NULL,
    machinery_checksum text NOT NULL,
    kubernetes_version text NOT NULL,
    published_by       idn_id NOT NULL REFERENCES principal (id),
    published_role     role_name NOT NULL,
    epoch              ep_id NOT NULL REFERENCES recovery_epoch (id),
    published_at       timestamptz NOT NULL,
    writer             xid8 NOT NULL,
    CONSTRAINT release_draft_revision_key UNIQUE (draft_id, draft_revision)
);
CREATE INDEX release_cluster ON release (cluster_id);
COMMENT ON TABLE release IS
    'PA §6.2, IC §11: one per draft revision, complete or absent; digest is over its metadata and configuration digests. Immutable.';

CREATE TABLE release_machine (
    release_id              rel_id NOT NULL REFERENCES release (id),
    machine_id              mch_id NOT NULL REFERENCES machine (id),
    import_base_revision_id ibr_id NOT NULL REFERENCES import_base_revision (id),
    assignment_head_id      head_id REFERENCES head (id) DEFERRABLE INITIALLY DEFERRED,
    assignment_revision_id  asr_id REFERENCES assignment_revision (id),
    machine_type            text NOT NULL CHECK (machine_type IN ('worker', 'controlplane', 'init')),
    platform                text NOT NULL CHECK (platform IN ('metal', 'container', 'cloud')),
    configuration_digest    sha256_digest NOT NULL,
    ciphertext              transit_ciphertext NOT NULL,
    ciphertext_digest       sha256_digest NOT NULL,
    key_name                text NOT NULL CHECK (key_name ~ '^[^/]+$'),
    key_version             bigint NOT NULL CHECK (key_version > 0),
    review_configuration    text,
    review_notice           text,
    validation_result       text NOT NULL CHECK (validation_result IN ('passed')),
    validated_at            timestamptz NOT NULL,
    observation_id          obs_id NOT NULL REFERENCES observation (id),
    PRIMARY KEY (release_id, machine_id),
    CONSTRAINT release_machine_key_version
        CHECK (split_part(ciphertext, ':', 2) = 'v' || key_version::text),
    CONSTRAINT release_machine_ciphertext_digest
        CHECK (ciphertext_digest = sha256(convert_to(ciphertext, 'UTF8'))),
    CONSTRAINT release_machine_review CHECK (num_nonnulls(review_configuration, review_notice) = 1),
    CONSTRAINT release_machine_assignment
        CHECK (assignment_head_id IS NOT NULL OR assignment_revision_id IS NULL)
);
CREATE INDEX release_machine_machine ON release_machine (machine_id);
COMMENT ON TABLE release_machine IS
    'PA §6.2, IC §11: a machine''s artifact; assignment columns NULL when it compiled on its base alone. Immutable.';

CREATE TABLE release_source (
    release_id    rel_id NOT NULL REFERENCES release (id),
    head_id       head_id NOT NULL REFERENCES head (id) DEFERRABLE INITIALLY DEFERRED,
    kind          text NOT NULL CHECK (kind IN ('fragment', 'profile', 'assignment')),
    subject       text NOT NULL,
    revision_id   text,
    head_revision bigint NOT NULL CHECK (head_revision > 0),
    fragment_revision_id frv_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'fragment' THEN revision_id END) STORED
        REFERENCES fragment_revision (id),
    profile_revision_id prv_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'profile' THEN revision_id END) STORED
        REFERENCES profile_revision (id),
    assignment_revision_id asr_id GENERATED ALWAYS AS
        (CASE WHEN kind = 'assignment' THEN revision_id END) STORED
        REFERENCES assignment_revision (id),
    PRIMARY KEY (release_id, head_id),
    UNIQUE (release_id, kind, subject)
);
COMMENT ON TABLE release_source IS
    'PA §6.2: every head the release used or changed, the revision it left it at (NULL: removed) and the head revision. Immutable.';

CREATE TABLE provenance (
    release_id         rel_id NOT NULL,
    machine_id         mch_id NOT NULL,
    ordinal            integer NOT NULL CHECK (ordinal >= 0),
    reference          reference_name NOT NULL,
    version            bigint NOT NULL CHECK (version > 0),
    encoding           text CHECK (encoding IN ('base64')),
    member             integer CHECK (member >= 0),
    source_revision_id text NOT NULL CHECK (source_revision_id ~ '^(frv|ibr)_'),
    source_digest      sha256_digest NOT NULL,
    source_path        text NOT NULL,
    occurrence         integer NOT NULL CHECK (occurrence >= 0),
    output             text,
    overridden_by      frv_id REFERENCES fragment_revision (id),
    overridden_digest  sha256_digest,
    PRIMARY KEY (release_id, machine_id, ordinal),
    FOREIGN KEY (release_id, machine_id) REFERENCES release_machine (release_id, machine_id),
    CONSTRAINT provenance_outcome CHECK (
        num_nonnulls(output, overridden_by) = 1
        AND num_nonnulls(overridden_by, overridden_digest) IN (0, 2))
);
COMMENT ON TABLE provenance IS
    'IC §8.2: one row per occurrence, member and outcome; paths are redacted. Immutable.';

CREATE TABLE dependency_effective (
    release_id      rel_id NOT NULL,
    machine_id      mch_id NOT NULL,
    reference       reference_name NOT NULL,
    version         bigint NOT NULL,
    provider_object text NOT NULL,
    created         text NOT NULL,
    PRIMARY KEY (release_id, machine_id, reference, version),
    FOREIGN KEY (release_id, machine_id) REFERENCES release_machine (release_id, machine_id),
    FOREIGN KEY (provider_object, version, created)
        REFERENCES dependency_status (provider_object, version, created)
);
CREATE INDEX dependency_effective_object
    ON dependency_effective (provider_object, version, created);
COMMENT ON TABLE dependency_effective IS 'IC §9: what reached an output leaf. Immutable.';

CREATE TABLE dependency_reproduction (
    release_id         rel_id NOT NULL,
    machine_id         mch_id NOT NULL,
    source_revision_id text NOT NULL CHECK (source_revision_id ~ '^(frv|ibr)_'),
    occurrence         integer NOT NULL CHECK (occurrence >= 0),
    source_digest      sha256_digest NOT NULL,
    source_path        text NOT NULL,
    reference          reference_name NOT NULL,
    version            bigint NOT NULL,
    provider_object    text NOT NULL,
    created            text NOT NULL,
    PRIMARY KEY (release_id, machine_id, source_revision_id, occurrence),
    FOREIGN KEY (release_id, machine_id) REFERENCES release_machine (release_id, machine_id),
    FOREIGN KEY (source_revision_id, reference) REFERENCES reference_row (revision_id, name),
    FOREIGN KEY (provider_object, version, created)
        REFERENCES dependency_status (provider_object, version, created)
);
CREATE INDEX dependency_reproduction_object
    ON dependency_reproduction (provider_object, version, created);
COMMENT ON TABLE dependency_reproduction IS
    'IC §9: every occurrence in a source of the machine''s composition, overridden ones included. Immutable.';

CREATE TABLE dependency_encryption (
    release_id      rel_id NOT NULL,
    machine_id      mch_id NOT NULL,
    provider_object text NOT NULL,
    version         bigint NOT NULL,
    created         text NOT NULL,
    PRIMARY KEY (release_id, machine_id),
    FOREIGN KEY (release_id, machine_id) REFERENCES release_machine (release_id, machine_id),
    FOREIGN KEY (provider_object, version, created)
        REFERENCES dependency_status (provider_object, version, created)
);
CREATE INDEX dependency_encryption_object
    ON dependency_encryption (provider_object, version, created);
COMMENT ON TABLE dependency_encryption IS
    'IC §9, §11: the Transit key version a machine''s artifact needs, by its identity. Immutable.';

ALTER TABLE draft ADD FOREIGN KEY (release_id) REFERENCES release (id);
ALTER TABLE operation ADD FOREIGN KEY (result_release) REFERENCES release (id);

CREATE TABLE machine_state (
    machine_id        mch_id PRIMARY KEY REFERENCES machine (id),
    desired_release   rel_id,
    applied_release   rel_id,
    applied_digest    sha256_digest,
    applied_source    text CHECK (applied_source IN ('operation', 'adoption')),
    applied_operation op_id REFERENCES operation (id),
    baseline_revision bigint CHECK (baseline_revision > 0),
    revision          bigint NOT NULL DEFAULT 1 CHECK (revision > 0),
    FOREIGN KEY (desired_release, machine_id) REFERENCES release_machine (release_id, machine_id),
    FOREIGN KEY (applied_release, machine_id) REFERENCES release_machine (release_id, machine_id),
    CONSTRAINT machine_state_applied CHECK (num_nonnulls(applied_release, applied_digest,
        applied_source, applied_operation, baseline_revision) IN (0, 5))
);
COMMENT ON TABLE machine_state IS
    'EaR 1: Desired, Applied with its source, baseline revision; made with its machine. Mutable, revisioned.';

-- 9. Plans and authority ---------------------------------------------------------------

CREATE TABLE plan (
    id                       pln_id PRIMARY KEY,
    cluster_id               cl_id NOT NULL REFERENCES cluster (id),
    machine_id               mch_id NOT NULL,
    release_id               rel_id NOT NULL,
    operation                text NOT NULL CHECK (operation IN ('apply-config', 'adopt')),
    mode                     text CHECK (mode IN ('no-reboot')),
    configuration_digest     sha256_digest NOT NULL,
    contract                 text NOT NULL,
    machinery_version        text NOT NULL,
    machinery_checksum       text NOT NULL,
    kubernetes_version       text NOT NULL,
    key_name                 text NOT NULL,
    key_version              bigint NOT NULL,
    key_created              text NOT NULL,
    smbios_uuid              text,
    talos_node_id            text,
    talos_cluster_id         text NOT NULL,
    assignment_head_id       head_id REFERENCES head (id),
    assignment_head_revision bigint,
    assignment_revision_id   asr_id REFERENCES assignment_revision (id),
    import_base_revision_id  ibr_id NOT NULL REFERENCES import_base_revision (id),
    baseline_revision        bigint,
    desired_release          rel_id REFERENCES release (id),
    applied_release          rel_id REFERENCES release (id),
    predispatch_digest       sha256_digest,
    drift_revision           bigint,
    route                    text NOT NULL,
    max_observation_age_s    integer NOT NULL CHECK (max_observation_age_s BETWEEN 1 AND 604800),
    check_validity_s         integer NOT NULL CHECK (check_validity_s BETWEEN 1 AND 604800),
    transport_deadline_s     integer CHECK (transport_deadline_s BETWEEN 1 AND 604800),
    verification_deadline_s  integer CHECK (verification_deadline_s BETWEEN 1 AND 604800),
    max_attempts             integer CHECK (max_attempts BETWEEN 1 AND 10),
    rollout_limit            integer NOT NULL DEFAULT 1 CHECK (rollout_limit = 1),
    approval_policy          text NOT NULL DEFAULT 'one-approver'
                                 CHECK (approval_policy IN ('one-approver')),
    evidence                 jsonb NOT NULL CHECK (jsonb_typeof(evidence) = 'object'),
    timeline_revision        bigint NOT NULL,
    principal_id             idn_id NOT NULL REFERENCES principal (id),
    role                     role_name NOT NULL,
    epoch                    ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id                   act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    created_at               timestamptz NOT NULL,
    expires_at               timestamptz NOT NULL,
    FOREIGN KEY (cluster_id, machine_id) REFERENCES machine (cluster_id, id),
    FOREIGN KEY (release_id, machine_id) REFERENCES release_machine (release_id, machine_id),
    CONSTRAINT plan_expiry CHECK (expires_at > created_at
        AND expires_at <= created_at + interval '604800 seconds'),
    CONSTRAINT plan_identity CHECK (num_nonnulls(smbios_uuid, talos_node_id) = 1),
    CONSTRAINT plan_operation CHECK (CASE operation
        WHEN 'apply-config' THEN num_nulls(mode, predispatch_digest, baseline_revision,
                 desired_release, applied_release, transport_deadline_s,
                 verification_deadline_s, max_attempts) = 0
             AND desired_release = release_id
             AND transport_deadline_s <= verification_deadline_s
        ELSE num_nonnulls(mode, predispatch_digest, transport_deadline_s,
                 verification_deadline_s, max_attempts) = 0
             AND (baseline_revision IS NULL OR drift_revision IS NOT NULL) END)
);
CREATE INDEX plan_machine ON plan (machine_id);
COMMENT ON TABLE plan IS
    'EaR 2, PA §9.3: everything a plan binds, with the evidence shown to its approver (redacted). Immutable.';

ALTER TABLE operation ADD FOREIGN KEY (plan_id) REFERENCES plan (id);
ALTER TABLE timeline_event ADD FOREIGN KEY (plan_id) REFERENCES plan (id);
ALTER TABLE observation_start ADD FOREIGN KEY (plan_id) REFERENCES plan (id);

CREATE TABLE approval (
    id                    apr_id PRIMARY KEY,
    plan_id               pln_id NOT NULL REFERENCES plan (id),
    machine_id            mch_id NOT NULL REFERENCES machine (id),
    revision              bigint NOT NULL,
    principal_id          idn_id NOT NULL REFERENCES principal (id),
    role                  role_name NOT NULL CHECK (role = 'approver'),
    epoch                 ep_id NOT NULL REFERENCES recovery_epoch (id),
    self_approval_reasons text[] NOT NULL,
    unseen_overwrite      boolean NOT NULL,
    act_id                act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at                    timestamptz NOT NULL,
    CONSTRAINT approval_plan_epoch_key UNIQUE (plan_id, epoch),
    CONSTRAINT approval_reasons CHECK (
        self_approval_reasons <@ ARRAY['created-plan', 'published', 'authored-change',
            'authored-reused', 'owned-automation']
        AND array_position(self_approval_reasons, NULL) IS NULL)
);
COMMENT ON TABLE approval IS
    'PA §7.3, §10.5: one per plan and epoch; marked as self-approval when reasons is not empty. Immutable.';

CREATE TABLE plan_state (
    plan_id      pln_id PRIMARY KEY REFERENCES plan (id),
    state        text NOT NULL CHECK (state IN
                     ('proposed', 'approved', 'committed', 'revoked', 'cancelled', 'expired')),
    reason       text,
    approval_id  apr_id REFERENCES approval (id),
    operation_id op_id REFERENCES operation (id),
    revision     bigint NOT NULL DEFAULT 1 CHECK (revision > 0),
    CONSTRAINT plan_state_approval CHECK (CASE state
        WHEN 'approved' THEN approval_id IS NOT NULL WHEN 'committed' THEN approval_id IS NOT NULL
        WHEN 'proposed' THEN approval_id IS NULL WHEN 'cancelled' THEN approval_id IS NULL
        ELSE true END),
    CONSTRAINT plan_state_operation CHECK ((state = 'committed') = (operation_id IS NOT NULL))
);
COMMENT ON TABLE plan_state IS 'PA §8.1, EaR 2. Mutable, revisioned.';

CREATE TABLE approval_revocation (
    approval_id  apr_id PRIMARY KEY REFERENCES approval (id),
    plan_id      pln_id NOT NULL REFERENCES plan (id),
    machine_id   mch_id NOT NULL REFERENCES machine (id),
    revision     bigint NOT NULL,
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL,
    reason       reason_text NOT NULL,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL
);
COMMENT ON TABLE approval_revocation IS 'PA §10.4, T5b. Immutable.';

CREATE TABLE identity_revocation (
    revoked_id   idn_id PRIMARY KEY REFERENCES principal (id),
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL,
    reason       reason_text NOT NULL,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL
);
COMMENT ON TABLE identity_revocation IS 'PA §10.4, T5c: permanent. Immutable.';

CREATE TABLE plan_cancellation (
    plan_id      pln_id PRIMARY KEY REFERENCES plan (id),
    machine_id   mch_id NOT NULL REFERENCES machine (id),
    revision     bigint NOT NULL,
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL,
    reason       reason_text NOT NULL,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL
);
COMMENT ON TABLE plan_cancellation IS 'PA §9.3, T11. Immutable.';

-- 10. Dispatch -------------------------------------------------------------------------

CREATE TABLE use_time_check (
    machine_id     mch_id NOT NULL REFERENCES machine (id),
    revision       bigint NOT NULL,
    plan_id        pln_id NOT NULL REFERENCES plan (id),
    operation_id   op_id REFERENCES operation (id),
    key_name       text NOT NULL,
    key_version    bigint NOT NULL,
    access_path    text,
    access_version bigint,
    access_created text,
    outcome        text NOT NULL CHECK (outcome IN ('passed', 'failed')),
    cause          text,
    controller     owner_text NOT NULL,
    epoch          ep_id NOT NULL REFERENCES recovery_epoch (id),
    at             timestamptz NOT NULL,
    PRIMARY KEY (machine_id, revision),
    CONSTRAINT use_time_check_access CHECK (
        num_nonnulls(access_path, access_version, access_created) IN (0, 3)),
    CONSTRAINT use_time_check_outcome CHECK (
        (outcome = 'failed') = (cause IS NOT NULL)
        AND (outcome = 'failed' OR access_path IS NOT NULL))
);
CREATE INDEX use_time_check_plan ON use_time_check (plan_id);
COMMENT ON TABLE use_time_check IS
    'EaR 3.1: the artifact opened and the Talos access version read; cause is a code. Immutable.';

CREATE TABLE attempt (
    id                    att_id PRIMARY KEY,
    operation_id          op_id NOT NULL REFERENCES operation (id),
    machine_id            mch_id NOT NULL REFERENCES machine (id),
    number                integer NOT NULL CHECK (number > 0),
    revision              bigint NOT NULL,
    owner                 owner_text NOT NULL,
    owner_gen             bigint NOT NULL,
    owner_epoch           ep_id NOT NULL REFERENCES recovery_epoch (id),
    route                 text NOT NULL,
    observation_id        obs_id NOT NULL REFERENCES observation (id),
    check_revision        bigint NOT NULL,
    transport_deadline    timestamptz NOT NULL,
    verification_deadline timestamptz NOT NULL,
    recorded_at           timestamptz NOT NULL,
    UNIQUE (operation_id, number),
    UNIQUE (machine_id, revision),
    FOREIGN KEY (machine_id, check_revision) REFERENCES use_time_check (machine_id, revision),
    CONSTRAINT attempt_deadlines CHECK (
        transport_deadline > recorded_at AND verification_deadline >= transport_deadline)
);
COMMENT ON TABLE attempt IS 'EaR 3.3: committed before its request is sent. Immutable.';

CREATE TABLE response (
    attempt_id att_id CONSTRAINT response_attempt_key PRIMARY KEY REFERENCES attempt (id),
    machine_id mch_id NOT NULL REFERENCES machine (id),
    revision   bigint NOT NULL,
    class      text NOT NULL CHECK (class IN
                   ('accepted', 'refused-validation', 'refused-immediate', 'answered', 'transport')),
    code       text NOT NULL,
    text       text,
    controller controller_text NOT NULL,
    owner_gen  bigint NOT NULL,
    epoch      ep_id NOT NULL REFERENCES recovery_epoch (id),
    at         timestamptz NOT NULL
);
COMMENT ON TABLE response IS 'EaR 3.5: class and code of the answer; text only if recognised. Immutable.';

CREATE TABLE accounting (
    attempt_id        att_id PRIMARY KEY REFERENCES attempt (id),
    machine_id        mch_id NOT NULL REFERENCES machine (id),
    revision          bigint NOT NULL,
    start_observation obs_id NOT NULL REFERENCES observation (id),
    end_observation   obs_id NOT NULL REFERENCES observation (id),
    facts             jsonb NOT NULL CHECK (jsonb_typeof(facts) = 'object'),
    principal_id      idn_id NOT NULL REFERENCES principal (id),
    role              role_name NOT NULL,
    epoch             ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id            act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at                timestamptz NOT NULL
);
COMMENT ON TABLE accounting IS
    'EaR 5.2: a decision that a lost response''s attempt can no longer land. Immutable.';

CREATE TABLE drift_record (
    machine_id          mch_id NOT NULL REFERENCES machine (id),
    opened_revision     bigint NOT NULL,
    state               text NOT NULL CHECK (state IN ('open', 'closed')),
    resolution          text CHECK (resolution IN ('adopted', 'reverted', 'returned')),
    applied_digest      sha256_digest NOT NULL,
    observed_digest     sha256_digest NOT NULL,
    observation_id      obs_id NOT NULL REFERENCES observation (id),
    last_observation_id obs_id NOT NULL REFERENCES observation (id),
    late_landing        op_id REFERENCES operation (id),
    closed_revision     bigint,
    opened_at           timestamptz NOT NULL,
    closed_at           timestamptz,
    PRIMARY KEY (machine_id, opened_revision),
    CONSTRAINT drift_record_closed CHECK (
        num_nonnulls(resolution, closed_revision, closed_at)
            = CASE state WHEN 'closed' THEN 3 ELSE 0 END)
);
CREATE UNIQUE INDEX drift_open ON drift_record (machine_id) WHERE state = 'open';
COMMENT ON TABLE drift_record IS
    'EaR 6: named by the revision of its opening entry; observed_digest follows its last observation. Mutable projection.';

CREATE TABLE adoption_record (
    plan_id                 pln_id PRIMARY KEY REFERENCES plan (id),
    operation_id            op_id NOT NULL UNIQUE REFERENCES operation (id),
    machine_id              mch_id NOT NULL REFERENCES machine (id),
    revision                bigint NOT NULL,
    release_id              rel_id NOT NULL REFERENCES release (id),
    import_base_revision_id ibr_id NOT NULL REFERENCES import_base_revision (id),
    baseline_digest         sha256_digest NOT NULL,
    observation_id          obs_id NOT NULL REFERENCES observation (id),
    controller              controller_text NOT NULL,
    epoch                   ep_id NOT NULL REFERENCES recovery_epoch (id),
    at                      timestamptz NOT NULL
);
COMMENT ON TABLE adoption_record IS 'EaR 6.3, PA §3. Immutable.';

-- 11. Facts of a machine scope ---------------------------------------------------------

CREATE TABLE scope_freeze (
    machine_id   mch_id NOT NULL REFERENCES machine (id),
    revision     bigint NOT NULL,
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL,
    reason       reason_text,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL,
    PRIMARY KEY (machine_id, revision)
);
COMMENT ON TABLE scope_freeze IS 'EaR 6.2. Immutable.';

CREATE TABLE scope_unfreeze (
    machine_id   mch_id NOT NULL REFERENCES machine (id),
    revision     bigint NOT NULL,
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL CHECK (role = 'approver'),
    reason       reason_text NOT NULL,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL,
    PRIMARY KEY (machine_id, revision)
);
COMMENT ON TABLE scope_unfreeze IS 'EaR 6.2. Immutable.';

CREATE TABLE scope_accounting (
    machine_id        mch_id NOT NULL REFERENCES machine (id),
    revision          bigint NOT NULL,
    start_observation obs_id NOT NULL REFERENCES observation (id),
    end_observation   obs_id NOT NULL REFERENCES observation (id),
    facts             jsonb NOT NULL CHECK (jsonb_typeof(facts) = 'object'),
    principal_id      idn_id NOT NULL REFERENCES principal (id),
    role              role_name NOT NULL,
    epoch             ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id            act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at                timestamptz NOT NULL,
    PRIMARY KEY (machine_id, revision)
);
COMMENT ON TABLE scope_accounting IS
    'EaR 7.1, 7.2: the decision that what was sent before the restore has settled. Immutable.';

CREATE TABLE scope_mark (
    machine_id      mch_id NOT NULL REFERENCES machine (id),
    revision        bigint NOT NULL,
    from_state      text NOT NULL CHECK (from_state IN ('blocked', 'unresolved', 'ready')),
    to_state        text NOT NULL CHECK (to_state IN ('blocked', 'unresolved', 'ready')),
    observation_id  obs_id NOT NULL REFERENCES observation (id),
    desired_release rel_id REFERENCES release (id),
    missing         jsonb NOT NULL CHECK (jsonb_typeof(missing) = 'array'),
    facts           jsonb NOT NULL CHECK (jsonb_typeof(facts) = 'object'),
    principal_id    idn_id NOT NULL REFERENCES principal (id),
    role            role_name NOT NULL,
    epoch           ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id          act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at              timestamptz NOT NULL,
    PRIMARY KEY (machine_id, revision),
    CONSTRAINT scope_mark_missing CHECK ((to_state = 'blocked') = (missing <> '[]'))
);
COMMENT ON TABLE scope_mark IS 'EaR 7.1, PA §9.2. Immutable.';

CREATE TABLE scope_release (
    machine_id      mch_id NOT NULL REFERENCES machine (id),
    revision        bigint NOT NULL,
    mark_revision   bigint NOT NULL,
    desired_release rel_id REFERENCES release (id),
    facts           jsonb NOT NULL CHECK (jsonb_typeof(facts) = 'object'),
    principal_id    idn_id NOT NULL REFERENCES principal (id),
    role            role_name NOT NULL,
    epoch           ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id          act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at              timestamptz NOT NULL,
    PRIMARY KEY (machine_id, revision),
    FOREIGN KEY (machine_id, mark_revision) REFERENCES scope_mark (machine_id, revision)
);
COMMENT ON TABLE scope_release IS 'EaR 7.1: authorizes in its own epoch only. Immutable.';

CREATE TABLE decommission (
    machine_id   mch_id PRIMARY KEY REFERENCES machine (id),
    revision     bigint NOT NULL,
    principal_id idn_id NOT NULL REFERENCES principal (id),
    role         role_name NOT NULL,
    reason       reason_text NOT NULL,
    epoch        ep_id NOT NULL REFERENCES recovery_epoch (id),
    act_id       act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at           timestamptz NOT NULL
);
COMMENT ON TABLE decommission IS 'EaR 7.3. Immutable.';

-- 12. Idempotency ----------------------------------------------------------------------

CREATE TABLE idempotency_record (
    principal_id    idn_id NOT NULL REFERENCES principal (id),
    key             text NOT NULL CHECK (key ~ '^[A-Za-z0-9_-]{16,128}$'),
    fingerprint     sha256_digest NOT NULL,
    fingerprint_key digest_key_ref,
    method          text NOT NULL,
    route           text NOT NULL,
    request_id      req_id NOT NULL,
    epoch           ep_id NOT NULL REFERENCES recovery_epoch (id),
    status          smallint NOT NULL CHECK (status BETWEEN 200 AND 499),
    location        text,
    etag            text,
    body            text NOT NULL,
    operation_id    op_id REFERENCES operation (id),
    act_id          act_id NOT NULL REFERENCES act (id) DEFERRABLE INITIALLY DEFERRED,
    at              timestamptz NOT NULL,
    PRIMARY KEY (principal_id, key)
);
COMMENT ON TABLE idempotency_record IS
    'PA §7: the answer to replay; never a request body. Immutable.';

-- 13. Dependency monitor ---------------------------------------------------------------

CREATE TABLE dependency_monitor (
    singleton        boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    progress         timestamptz NOT NULL,
    last_pass_at     timestamptz,
    last_stall_at    timestamptz,
    last_logged_seq  bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE dependency_monitor IS 'DM §5. Mutable singleton, row-locked.';

CREATE SEQUENCE dependency_alert_seq AS bigint;
CREATE TABLE dependency_alert (
    id                 dal_id PRIMARY KEY,
    seq                bigint NOT NULL UNIQUE,
    kind               text NOT NULL,
    dependency_id      dep_id REFERENCES dependency_status (id),
    class              text,
    reason             text,
    provider_object    text,
    version            bigint,
    created            text,
    scheduled_deletion text,
    observed_from      timestamptz,
    answer_date        timestamptz,
    epoch              ep_id NOT NULL REFERENCES recovery_epoch (id),
    at                 timestamptz NOT NULL,
    writer             xid8 NOT NULL,
    CONSTRAINT dependency_alert_shape CHECK (CASE kind
        WHEN 'lost' THEN class IS NOT DISTINCT FROM 'lost'
             AND coalesce(reason, '') IN ('destroyed', 'pruned', 'trimmed')
        WHEN 'blocked' THEN class IS NOT DISTINCT FROM 'blocked'
             AND coalesce(reason, '') IN ('soft-deleted', 'below-decryption-floor')
        WHEN 'regression' THEN class IS NOT DISTINCT FROM 'unknown' AND reason IS NOT NULL
        WHEN 'persistent' THEN class IS NOT DISTINCT FROM 'unknown' AND reason IS NOT NULL
        WHEN 'deletion-scheduled' THEN class IS NOT DISTINCT FROM 'retained'
             AND coalesce(reason, '') = 'deletion-scheduled'
        WHEN 'monitor-stalled' THEN num_nonnulls(dependency_id, class, reason, provider_object,
             version, created, observed_from, answer_date) = 0
        ELSE false END),
    CONSTRAINT dependency_alert_unknown CHECK (class <> 'unknown' OR reason IN (
        'malformed', 'denied', 'absent', 'unavailable', 'unreachable', 'unreadable',
        'insufficient-evidence', 'identity-mismatch', 'deletion-time-undecidable',
        'soft-delete-unobserved', 'trimmed-unverified', 'below-decryption-floor-unverified')),
    CONSTRAINT dependency_alert_subject CHECK (kind = 'monitor-stalled' OR
        num_nulls(dependency_id, provider_object, version, created, observed_from) = 0),
    CONSTRAINT dependency_alert_scheduled
        CHECK ((kind = 'deletion-scheduled') = (scheduled_deletion IS NOT NULL))
);
COMMENT ON TABLE dependency_alert IS 'DM §5, §6: seq is recording order. Immutable.';

-- The singleton is locked before a number is taken, so numbers commit in order (DM §7).
CREATE FUNCTION bw_number_alert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM dependency_monitor FOR UPDATE;
    NEW.seq := nextval('dependency_alert_seq');
    RETURN NEW;
END $$;
CREATE TRIGGER dependency_alert_number BEFORE INSERT ON dependency_alert
    FOR EACH ROW EXECUTE FUNCTION bw_number_alert();

CREATE TABLE dependency_alert_release (
    alert_id   dal_id NOT NULL REFERENCES dependency_alert (id),
    release_id rel_id NOT NULL REFERENCES release (id),
    PRIMARY KEY (alert_id, release_id)
);
COMMENT ON TABLE dependency_alert_release IS 'DM §5: the releases an alert names. Immutable.';

CREATE FUNCTION bw_check_alert_release() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT 1 FROM dependency_alert a
          JOIN (SELECT release_id, provider_object, version, created FROM dependency_effective
                UNION ALL
                SELECT release_id, provider_object, version, created FROM dependency_reproduction
                UNION ALL
                SELECT release_id, provider_object, version, created FROM dependency_encryption
               ) d USING (provider_object, version, created)
         WHERE a.id = NEW.alert_id AND d.release_id = NEW.release_id) THEN
        RAISE EXCEPTION 'the release does not reference the version of the alert'
            USING ERRCODE = 'foreign_key_violation', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER dependency_alert_release_referenced BEFORE INSERT ON dependency_alert_release
    FOR EACH ROW EXECUTE FUNCTION bw_check_alert_release();

CREATE FUNCTION bw_monitor_moves_on() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.progress < OLD.progress OR NEW.last_logged_seq < OLD.last_logged_seq THEN
        RAISE EXCEPTION 'the progress of the monitor moved back'
            USING ERRCODE = 'BW004', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER dependency_monitor_moves_on BEFORE UPDATE ON dependency_monitor
    FOR EACH ROW EXECUTE FUNCTION bw_monitor_moves_on();

-- 14. Writers --------------------------------------------------------------------------

CREATE TRIGGER recovery_epoch_writer BEFORE INSERT ON recovery_epoch
    FOR EACH ROW EXECUTE FUNCTION bw_stamp_writer();
CREATE TRIGGER fragment_revision_writer BEFORE INSERT ON fragment_revision
    FOR EACH ROW EXECUTE FUNCTION bw_stamp_writer();
CREATE TRIGGER profile_revision_writer BEFORE INSERT ON profile_revision
    FOR EACH ROW EXECUTE FUNCTION bw_stamp_writer();
CREATE TRIGGER assignment_revision_writer BEFORE INSERT ON assignment_revision
    FOR EACH ROW EXECUTE FUNCTION bw_stamp_writer();
CREATE TRIGGER import_base_revision_writer BEFORE INSERT ON import_base_revision
    FOR EACH ROW EXECUTE FUNCTION bw_stamp_writer();
CREATE TRIGGER release_writer BEFORE INSERT ON release
    FOR EACH ROW EXECUTE FUNCTION bw_stamp_writer();
CREATE TRIGGER dependency_alert_writer BEFORE INSERT ON dependency_alert
    FOR EACH ROW EXECUTE FUNCTION bw_stamp_writer();

CREATE TRIGGER reference_row_same_writer BEFORE INSERT ON reference_row
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('fragment_revision or import_base_revision');
CREATE TRIGGER restored_backup_same_writer BEFORE INSERT ON restored_backup
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('recovery_epoch');
CREATE TRIGGER profile_pin_same_writer BEFORE INSERT ON profile_pin
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('profile_revision');
CREATE TRIGGER assignment_profile_same_writer BEFORE INSERT ON assignment_profile
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('assignment_revision');
CREATE TRIGGER assignment_fragment_same_writer BEFORE INSERT ON assignment_fragment
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('assignment_revision');
CREATE TRIGGER release_machine_same_writer BEFORE INSERT ON release_machine
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('release');
CREATE TRIGGER release_source_same_writer BEFORE INSERT ON release_source
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('release');
CREATE TRIGGER provenance_same_writer BEFORE INSERT ON provenance
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('release');
CREATE TRIGGER dependency_effective_same_writer BEFORE INSERT ON dependency_effective
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('release');
CREATE TRIGGER dependency_reproduction_same_writer BEFORE INSERT ON dependency_reproduction
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('release');
CREATE TRIGGER dependency_encryption_same_writer BEFORE INSERT ON dependency_encryption
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('release');
CREATE TRIGGER dependency_alert_release_same_writer BEFORE INSERT ON dependency_alert_release
    FOR EACH ROW EXECUTE FUNCTION bw_check_writer('dependency_alert');

-- 15. Checks at commit -----------------------------------------------------------------

-- The composition of each machine of a release: its import base, the fragments its
-- assignment's profiles pin and those it selects, each at the revision the release's
-- sources name (PA §6.2). Over the whole release at once: asked per row, the check of a
-- thousand machines would take seconds of every publication's commit.
CREATE FUNCTION bw_composition(release rel_id)
RETURNS TABLE (machine_id mch_id, revision_id text) LANGUAGE sql STABLE AS $$
    SELECT rm.machine_id, rm.import_base_revision_id::text FROM release_machine rm
     WHERE rm.release_id = $1
    UNION
    SELECT rm.machine_id, pp.fragment_revision_id::text FROM release_machine rm
      JOIN assignment_profile ap ON ap.assignment_revision_id = rm.assignment_revision_id
      JOIN release_source rs ON rs.release_id = rm.release_id AND rs.kind = 'profile'
                            AND rs.subject = ap.name
      JOIN profile_pin pp ON pp.profile_revision_id = rs.revision_id
     WHERE rm.release_id = $1
    UNION
    SELECT rm.machine_id, rs.revision_id FROM release_machine rm
      JOIN assignment_fragment af ON af.assignment_revision_id = rm.assignment_revision_id
      JOIN release_source rs ON rs.release_id = rm.release_id AND rs.kind = 'fragment'
                            AND rs.subject = af.name
     WHERE rm.release_id = $1 AND rs.revision_id IS NOT NULL
$$;

CREATE FUNCTION bw_check_release() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    broken text;
BEGIN
    SELECT CASE
        WHEN NOT EXISTS (SELECT 1 FROM release_machine WHERE release_id = NEW.id)
        THEN 'it covers no machine'
        WHEN EXISTS (
            SELECT 1 FROM release_machine rm
             LEFT JOIN release_source rs ON rs.release_id = rm.release_id
                   AND rs.head_id = rm.assignment_head_id
             WHERE rm.release_id = NEW.id AND rm.assignment_head_id IS NOT NULL
               AND (rs.head_id IS NULL OR rs.kind <> 'assignment'
                    OR rs.subject <> rm.machine_id
                    OR rs.revision_id IS DISTINCT FROM rm.assignment_revision_id))
        THEN 'a machine''s assignment revision is not its assignment source''s'
        WHEN EXISTS (
            SELECT 1 FROM release_source rs
              JOIN profile_pin pp ON pp.profile_revision_id = rs.revision_id
             WHERE rs.release_id = NEW.id AND rs.kind = 'profile' AND NOT EXISTS (
                   SELECT 1 FROM release_source f WHERE f.release_id = NEW.id
                      AND f.kind = 'fragment' AND f.revision_id = pp.fragment_revision_id))
        THEN 'a pinned fragment is not among its sources'
        WHEN EXISTS (
            SELECT 1 FROM release_source rs
              JOIN (SELECT assignment_revision_id, 'profile' AS kind, name FROM assignment_profile
                    UNION ALL
                    SELECT assignment_revision_id, 'fragment', name FROM assignment_fragment) s
                ON s.assignment_revision_id = rs.revision_id
             WHERE rs.release_id = NEW.id AND rs.kind = 'assignment' AND NOT EXISTS (
                   SELECT 1 FROM release_source n WHERE n.release_id = NEW.id
                      AND n.kind = s.kind AND n.subject = s.name AND n.revision_id IS NOT NULL))
        THEN 'a selected name is not among its sources'
        WHEN EXISTS (
            SELECT 1 FROM release_machine rm
             WHERE rm.release_id = NEW.id AND NOT EXISTS (
                   SELECT 1 FROM dependency_encryption e
                     JOIN dependency_status s USING (provider_object, version, created)
                    WHERE e.release_id = rm.release_id AND e.machine_id = rm.machine_id
                      AND s.provider = 'transit' AND e.provider_object = rm.key_name
                      AND e.version = rm.key_version))
        THEN 'a machine has no encryption dependency on its own key version'
        WHEN EXISTS (
            SELECT 1 FROM dependency_reproduction r
             WHERE r.release_id = NEW.id AND NOT EXISTS (
                   SELECT 1 FROM reference_row d
                    WHERE d.revision_id = r.source_revision_id AND d.name = r.reference
                      AND d.version = r.version AND d.generation_path = r.provider_object))
        THEN 'a reproduction dependency is not what its source declares'
        WHEN EXISTS (
            SELECT r.machine_id, r.source_revision_id FROM dependency_reproduction r
             WHERE r.release_id = NEW.id
            EXCEPT
            SELECT c.machine_id, c.revision_id FROM bw_composition(NEW.id) c)
        THEN 'a reproduction dependency''s source is not in its machine''s composition'
        WHEN EXISTS (
            SELECT 1 FROM dependency_effective e
             WHERE e.release_id = NEW.id AND NOT EXISTS (
                   SELECT 1 FROM dependency_reproduction r
                    WHERE r.release_id = e.release_id AND r.machine_id = e.machine_id
                      AND r.reference = e.reference AND r.version = e.version
                      AND r.provider_object = e.provider_object AND r.created = e.created))
        THEN 'an effective dependency has no reproduction dependency'
        WHEN EXISTS (
            SELECT 1 FROM release_machine rm
              JOIN observation_start o ON o.id = rm.observation_id
             WHERE rm.release_id = NEW.id
               AND (o.machine_id <> rm.machine_id OR o.purpose <> 'publication'
                    OR o.operation_id IS DISTINCT FROM NEW.operation_id))
        THEN 'a machine''s observation is not of its own publication'
    END INTO broken;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION 'release % is refused: %', NEW.id, broken
            USING ERRCODE = 'BW003', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER release_complete AFTER INSERT ON release
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION bw_check_release();

CREATE FUNCTION bw_check_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.origin = 'entry'
       AND NOT EXISTS (SELECT 1 FROM restored_backup WHERE epoch = NEW.id) THEN
        RAISE EXCEPTION 'an entry names no restored backup'
            USING ERRCODE = 'BW003', CONSTRAINT = TG_NAME;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER recovery_epoch_complete AFTER INSERT ON recovery_epoch
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION bw_check_entry();

-- 16. Immutability ---------------------------------------------------------------------

-- Statement triggers: even an UPDATE that matches no row is refused. A locking SELECT
-- fires none of them, so an approval can still be locked (PA §10.4).
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY[
        'schema_migrations', 'recovery_epoch', 'restored_backup', 'recovery_exit', 'act',
        'machine_endpoint_change', 'fragment_revision', 'profile_revision', 'profile_pin',
        'assignment_revision', 'assignment_profile', 'assignment_fragment',
        'import_base_revision', 'reference_row', 'timeline_event', 'observation_start',
        'observation', 'release', 'release_machine', 'release_source', 'provenance',
        'dependency_effective', 'dependency_reproduction', 'dependency_encryption', 'plan',
        'approval', 'approval_revocation', 'identity_revocation', 'plan_cancellation',
        'use_time_check', 'attempt', 'response', 'accounting', 'adoption_record', 'scope_freeze',
        'scope_unfreeze', 'scope_accounting', 'scope_mark', 'scope_release', 'decommission',
        'idempotency_record', 'dependency_alert', 'dependency_alert_release'
    ] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE OR DELETE OR TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION bw_refuse_change()', t || '_immutable', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY[
        'principal', 'installation_state', 'automation_token', 'cluster', 'rollout', 'machine',
        'draft', 'staging_claim', 'head', 'draft_entry', 'operation', 'dependency_status',
        'machine_state', 'plan_state', 'drift_record', 'dependency_monitor'
    ] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE DELETE OR TRUNCATE ON %I
            FOR EACH STATEMENT EXECUTE FUNCTION bw_refuse_change()', t || '_kept', t);
    END LOOP;
END $$;
