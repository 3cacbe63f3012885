// @generated automatically by Diesel CLI.

pub mod sql_types {
    #[derive(diesel::sql_types::SqlType)]
    #[diesel(postgres_type(name = "xid8", schema = "pg_catalog"))]
    pub struct Xid8;
}

diesel::table! {
    accounting (attempt_id) {
        attempt_id -> Text,
        machine_id -> Text,
        revision -> Int8,
        start_observation -> Text,
        end_observation -> Text,
        facts -> Jsonb,
        principal_id -> Text,
        role -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    act (id) {
        id -> Text,
        seq -> Int8,
        principal_id -> Text,
        principal_kind -> Text,
        role -> Nullable<Text>,
        action -> Text,
        subjects -> Jsonb,
        idempotency_key -> Nullable<Text>,
        request_id -> Nullable<Text>,
        epoch -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    adoption_record (plan_id) {
        plan_id -> Text,
        operation_id -> Text,
        machine_id -> Text,
        revision -> Int8,
        release_id -> Text,
        import_base_revision_id -> Text,
        baseline_digest -> Bytea,
        observation_id -> Text,
        controller -> Text,
        epoch -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    approval (id) {
        id -> Text,
        plan_id -> Text,
        machine_id -> Text,
        revision -> Int8,
        principal_id -> Text,
        role -> Text,
        epoch -> Text,
        self_approval_reasons -> Array<Nullable<Text>>,
        unseen_overwrite -> Bool,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    approval_revocation (approval_id) {
        approval_id -> Text,
        plan_id -> Text,
        machine_id -> Text,
        revision -> Int8,
        principal_id -> Text,
        role -> Text,
        reason -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    assignment_fragment (assignment_revision_id, layer, position) {
        assignment_revision_id -> Text,
        layer -> Text,
        position -> Int4,
        name -> Text,
    }
}

diesel::table! {
    assignment_profile (assignment_revision_id, position) {
        assignment_revision_id -> Text,
        position -> Int4,
        name -> Text,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Xid8;

    assignment_revision (id) {
        id -> Text,
        cluster_id -> Text,
        machine_id -> Text,
        draft_id -> Text,
        author_id -> Text,
        author_role -> Text,
        epoch -> Text,
        created_at -> Timestamptz,
        writer -> Xid8,
    }
}

diesel::table! {
    attempt (id) {
        id -> Text,
        operation_id -> Text,
        machine_id -> Text,
        number -> Int4,
        revision -> Int8,
        owner -> Text,
        owner_gen -> Int8,
        owner_epoch -> Text,
        route -> Text,
        observation_id -> Text,
        check_revision -> Int8,
        transport_deadline -> Timestamptz,
        verification_deadline -> Timestamptz,
        recorded_at -> Timestamptz,
    }
}

diesel::table! {
    automation_token (id) {
        id -> Text,
        principal_id -> Text,
        secret_sha256 -> Bytea,
        roles -> Array<Nullable<Text>>,
        epoch -> Text,
        issued_at -> Timestamptz,
        expires_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    cluster (id) {
        id -> Text,
        name -> Text,
        endpoint -> Text,
        talos_cluster_id -> Text,
        contract -> Text,
        status -> Text,
        revision -> Int8,
        created_by -> Text,
        created_role -> Text,
        epoch -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    decommission (machine_id) {
        machine_id -> Text,
        revision -> Int8,
        principal_id -> Text,
        role -> Text,
        reason -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Xid8;

    dependency_alert (id) {
        id -> Text,
        seq -> Int8,
        kind -> Text,
        dependency_id -> Nullable<Text>,
        class -> Nullable<Text>,
        reason -> Nullable<Text>,
        provider_object -> Nullable<Text>,
        version -> Nullable<Int8>,
        created -> Nullable<Text>,
        scheduled_deletion -> Nullable<Text>,
        observed_from -> Nullable<Timestamptz>,
        answer_date -> Nullable<Timestamptz>,
        epoch -> Text,
        at -> Timestamptz,
        writer -> Xid8,
    }
}

diesel::table! {
    dependency_alert_release (alert_id, release_id) {
        alert_id -> Text,
        release_id -> Text,
    }
}

diesel::table! {
    dependency_effective (release_id, machine_id, reference, version) {
        release_id -> Text,
        machine_id -> Text,
        reference -> Text,
        version -> Int8,
        provider_object -> Text,
        created -> Text,
    }
}

diesel::table! {
    dependency_encryption (release_id, machine_id) {
        release_id -> Text,
        machine_id -> Text,
        provider_object -> Text,
        version -> Int8,
        created -> Text,
    }
}

diesel::table! {
    dependency_monitor (singleton) {
        singleton -> Bool,
        progress -> Timestamptz,
        last_pass_at -> Nullable<Timestamptz>,
        last_stall_at -> Nullable<Timestamptz>,
        last_logged_seq -> Int8,
    }
}

diesel::table! {
    dependency_reproduction (release_id, machine_id, source_revision_id, occurrence) {
        release_id -> Text,
        machine_id -> Text,
        source_revision_id -> Text,
        occurrence -> Int4,
        source_digest -> Bytea,
        source_path -> Text,
        reference -> Text,
        version -> Int8,
        provider_object -> Text,
        created -> Text,
    }
}

diesel::table! {
    dependency_status (id) {
        id -> Text,
        provider -> Text,
        provider_object -> Text,
        version -> Int8,
        created -> Text,
        class -> Text,
        reason -> Nullable<Text>,
        first_retained_at -> Nullable<Timestamptz>,
        unknown_since -> Nullable<Timestamptz>,
        persistent_alert_at -> Nullable<Timestamptz>,
        scheduled_deletion -> Nullable<Text>,
        warned_deletion -> Nullable<Text>,
        observed_from -> Timestamptz,
        recorded_at -> Timestamptz,
        answer_date -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    draft (id) {
        id -> Text,
        cluster_id -> Text,
        title -> Text,
        state -> Text,
        revision -> Int8,
        etag_token -> Text,
        release_id -> Nullable<Text>,
        created_by -> Text,
        created_role -> Text,
        epoch -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    draft_entry (draft_id, kind, subject) {
        draft_id -> Text,
        kind -> Text,
        subject -> Text,
        head_id -> Nullable<Text>,
        base -> Nullable<Int8>,
        revision_id -> Nullable<Text>,
        machine_id -> Nullable<Text>,
        fragment_revision_id -> Nullable<Text>,
        profile_revision_id -> Nullable<Text>,
        assignment_revision_id -> Nullable<Text>,
        import_base_revision_id -> Nullable<Text>,
    }
}

diesel::table! {
    drift_record (machine_id, opened_revision) {
        machine_id -> Text,
        opened_revision -> Int8,
        state -> Text,
        resolution -> Nullable<Text>,
        applied_digest -> Bytea,
        observed_digest -> Bytea,
        observation_id -> Text,
        last_observation_id -> Text,
        late_landing -> Nullable<Text>,
        closed_revision -> Nullable<Int8>,
        opened_at -> Timestamptz,
        closed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Xid8;

    fragment_revision (id) {
        id -> Text,
        cluster_id -> Text,
        name -> Text,
        layer -> Text,
        document -> Text,
        document_sha256 -> Bytea,
        canonical -> Text,
        embedded -> Jsonb,
        draft_id -> Text,
        claim_id -> Text,
        author_id -> Text,
        author_role -> Text,
        epoch -> Text,
        created_at -> Timestamptz,
        writer -> Xid8,
    }
}

diesel::table! {
    head (id) {
        id -> Text,
        kind -> Text,
        cluster_id -> Text,
        subject -> Text,
        layer -> Nullable<Text>,
        revision_id -> Nullable<Text>,
        head_revision -> Int8,
        etag_token -> Text,
        created_at -> Timestamptz,
        machine_id -> Nullable<Text>,
        fragment_revision_id -> Nullable<Text>,
        profile_revision_id -> Nullable<Text>,
        assignment_revision_id -> Nullable<Text>,
    }
}

diesel::table! {
    idempotency_record (principal_id, key) {
        principal_id -> Text,
        key -> Text,
        fingerprint -> Bytea,
        fingerprint_key -> Nullable<Text>,
        method -> Text,
        route -> Text,
        request_id -> Text,
        epoch -> Text,
        status -> Int2,
        location -> Nullable<Text>,
        etag -> Nullable<Text>,
        body -> Text,
        operation_id -> Nullable<Text>,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    identity_revocation (revoked_id) {
        revoked_id -> Text,
        principal_id -> Text,
        role -> Text,
        reason -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Xid8;

    import_base_revision (id) {
        id -> Text,
        cluster_id -> Text,
        machine_id -> Text,
        kind -> Text,
        document -> Text,
        document_sha256 -> Bytea,
        canonical -> Text,
        embedded -> Jsonb,
        baseline_ciphertext -> Text,
        baseline_keyed_digest -> Bytea,
        baseline_digest_key -> Text,
        configuration_digest -> Bytea,
        draft_id -> Text,
        claim_id -> Text,
        author_id -> Text,
        author_role -> Text,
        epoch -> Text,
        created_at -> Timestamptz,
        writer -> Xid8,
    }
}

diesel::table! {
    installation_state (singleton) {
        singleton -> Bool,
        current_epoch -> Text,
        recovery_mode -> Bool,
        schema_version -> Int4,
        cursor_key -> Bytea,
    }
}

diesel::table! {
    machine (id) {
        id -> Text,
        cluster_id -> Text,
        smbios_uuid -> Nullable<Text>,
        talos_node_id -> Nullable<Text>,
        serial -> Nullable<Text>,
        talos_endpoint -> Text,
        platform -> Text,
        frozen -> Bool,
        scope_state -> Text,
        scope_epoch -> Nullable<Text>,
        revision_counter -> Int8,
        revision -> Int8,
        created_by -> Text,
        created_role -> Text,
        epoch -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    machine_endpoint_change (machine_id, revision) {
        machine_id -> Text,
        revision -> Int8,
        previous -> Text,
        current -> Text,
        principal_id -> Text,
        role -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    machine_state (machine_id) {
        machine_id -> Text,
        desired_release -> Nullable<Text>,
        applied_release -> Nullable<Text>,
        applied_digest -> Nullable<Bytea>,
        applied_source -> Nullable<Text>,
        applied_operation -> Nullable<Text>,
        baseline_revision -> Nullable<Int8>,
        revision -> Int8,
    }
}

diesel::table! {
    observation (id) {
        id -> Text,
        machine_id -> Text,
        revision -> Int8,
        access_path -> Nullable<Text>,
        access_version -> Nullable<Int8>,
        access_created -> Nullable<Text>,
        smbios_uuid -> Nullable<Text>,
        talos_node_id -> Nullable<Text>,
        talos_cluster_id -> Nullable<Text>,
        running_version -> Nullable<Text>,
        configuration_digest -> Nullable<Bytea>,
        configuration_version -> Nullable<Text>,
        configuration_created -> Nullable<Text>,
        health_stage -> Nullable<Text>,
        health_ready -> Nullable<Bool>,
        unread -> Jsonb,
        recorded_at -> Timestamptz,
    }
}

diesel::table! {
    observation_start (id) {
        id -> Text,
        machine_id -> Text,
        basis -> Int8,
        purpose -> Text,
        plan_id -> Nullable<Text>,
        operation_id -> Nullable<Text>,
        publication_generation -> Nullable<Int8>,
        endpoint -> Text,
        baseline_revision -> Nullable<Int8>,
        assignment_head_id -> Nullable<Text>,
        assignment_head_revision -> Nullable<Int8>,
        controller -> Text,
        epoch -> Text,
        started_at -> Timestamptz,
    }
}

diesel::table! {
    operation (id) {
        id -> Text,
        seq -> Int8,
        kind -> Text,
        state -> Text,
        owner -> Nullable<Text>,
        owner_gen -> Int8,
        owner_epoch -> Nullable<Text>,
        lease_until -> Nullable<Timestamptz>,
        cluster_id -> Text,
        machine_id -> Nullable<Text>,
        plan_id -> Nullable<Text>,
        draft_id -> Nullable<Text>,
        draft_revision -> Nullable<Int8>,
        claim_id -> Nullable<Text>,
        classification -> Nullable<Text>,
        classified_revision -> Nullable<Int8>,
        classified_gen -> Nullable<Int8>,
        retired -> Bool,
        last_event -> Int8,
        result_release -> Nullable<Text>,
        result_import_base -> Nullable<Text>,
        error -> Nullable<Jsonb>,
        created_by -> Nullable<Text>,
        created_role -> Nullable<Text>,
        epoch -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    plan (id) {
        id -> Text,
        cluster_id -> Text,
        machine_id -> Text,
        release_id -> Text,
        operation -> Text,
        mode -> Nullable<Text>,
        configuration_digest -> Bytea,
        contract -> Text,
        machinery_version -> Text,
        machinery_checksum -> Text,
        kubernetes_version -> Text,
        key_name -> Text,
        key_version -> Int8,
        key_created -> Text,
        smbios_uuid -> Nullable<Text>,
        talos_node_id -> Nullable<Text>,
        talos_cluster_id -> Text,
        assignment_head_id -> Nullable<Text>,
        assignment_head_revision -> Nullable<Int8>,
        assignment_revision_id -> Nullable<Text>,
        import_base_revision_id -> Text,
        baseline_revision -> Nullable<Int8>,
        desired_release -> Nullable<Text>,
        applied_release -> Nullable<Text>,
        predispatch_digest -> Nullable<Bytea>,
        drift_revision -> Nullable<Int8>,
        route -> Text,
        max_observation_age_s -> Int4,
        check_validity_s -> Int4,
        transport_deadline_s -> Nullable<Int4>,
        verification_deadline_s -> Nullable<Int4>,
        max_attempts -> Nullable<Int4>,
        rollout_limit -> Int4,
        approval_policy -> Text,
        evidence -> Jsonb,
        timeline_revision -> Int8,
        principal_id -> Text,
        role -> Text,
        epoch -> Text,
        act_id -> Text,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    plan_cancellation (plan_id) {
        plan_id -> Text,
        machine_id -> Text,
        revision -> Int8,
        principal_id -> Text,
        role -> Text,
        reason -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    plan_state (plan_id) {
        plan_id -> Text,
        state -> Text,
        reason -> Nullable<Text>,
        approval_id -> Nullable<Text>,
        operation_id -> Nullable<Text>,
        revision -> Int8,
    }
}

diesel::table! {
    principal (id) {
        id -> Text,
        kind -> Text,
        iss -> Nullable<Text>,
        sub -> Nullable<Text>,
        name -> Nullable<Text>,
        display -> Nullable<Text>,
        responsible -> Nullable<Text>,
        revoked -> Bool,
        revoked_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    profile_pin (profile_revision_id, position) {
        profile_revision_id -> Text,
        position -> Int4,
        fragment_revision_id -> Text,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Xid8;

    profile_revision (id) {
        id -> Text,
        cluster_id -> Text,
        name -> Text,
        draft_id -> Text,
        author_id -> Text,
        author_role -> Text,
        epoch -> Text,
        created_at -> Timestamptz,
        writer -> Xid8,
    }
}

diesel::table! {
    provenance (release_id, machine_id, ordinal) {
        release_id -> Text,
        machine_id -> Text,
        ordinal -> Int4,
        reference -> Text,
        version -> Int8,
        encoding -> Nullable<Text>,
        member -> Nullable<Int4>,
        source_revision_id -> Text,
        source_digest -> Bytea,
        source_path -> Text,
        occurrence -> Int4,
        output -> Nullable<Text>,
        overridden_by -> Nullable<Text>,
        overridden_digest -> Nullable<Bytea>,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Xid8;

    recovery_epoch (id) {
        id -> Text,
        origin -> Text,
        entered_at -> Timestamptz,
        principal_id -> Nullable<Text>,
        role -> Nullable<Text>,
        reason -> Nullable<Text>,
        stopped_at -> Nullable<Timestamptz>,
        act_id -> Nullable<Text>,
        writer -> Xid8,
    }
}

diesel::table! {
    recovery_exit (epoch) {
        epoch -> Text,
        principal_id -> Text,
        role -> Text,
        facts -> Jsonb,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    reference_row (revision_id, name) {
        revision_id -> Text,
        name -> Text,
        kind -> Text,
        version -> Int8,
        encoding -> Nullable<Text>,
        cluster_id -> Text,
        generation_path -> Text,
        keyed_digest -> Bytea,
        digest_key -> Text,
        fragment_revision_id -> Nullable<Text>,
        import_base_revision_id -> Nullable<Text>,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::sql_types::Xid8;

    release (id) {
        id -> Text,
        cluster_id -> Text,
        draft_id -> Text,
        draft_revision -> Int8,
        operation_id -> Text,
        digest -> Bytea,
        contract -> Text,
        machinery_version -> Text,
        machinery_checksum -> Text,
        kubernetes_version -> Text,
        published_by -> Text,
        published_role -> Text,
        epoch -> Text,
        published_at -> Timestamptz,
        writer -> Xid8,
    }
}

diesel::table! {
    release_machine (release_id, machine_id) {
        release_id -> Text,
        machine_id -> Text,
        import_base_revision_id -> Text,
        assignment_head_id -> Nullable<Text>,
        assignment_revision_id -> Nullable<Text>,
        machine_type -> Text,
        platform -> Text,
        configuration_digest -> Bytea,
        ciphertext -> Text,
        ciphertext_digest -> Bytea,
        key_name -> Text,
        key_version -> Int8,
        review_configuration -> Nullable<Text>,
        review_notice -> Nullable<Text>,
        validation_result -> Text,
        validated_at -> Timestamptz,
        observation_id -> Text,
    }
}

diesel::table! {
    release_source (release_id, head_id) {
        release_id -> Text,
        head_id -> Text,
        kind -> Text,
        subject -> Text,
        revision_id -> Nullable<Text>,
        head_revision -> Int8,
        fragment_revision_id -> Nullable<Text>,
        profile_revision_id -> Nullable<Text>,
        assignment_revision_id -> Nullable<Text>,
    }
}

diesel::table! {
    response (attempt_id) {
        attempt_id -> Text,
        machine_id -> Text,
        revision -> Int8,
        class -> Text,
        code -> Text,
        text -> Nullable<Text>,
        controller -> Text,
        owner_gen -> Int8,
        epoch -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    restored_backup (epoch, family) {
        epoch -> Text,
        family -> Text,
        backup -> Text,
        taken_at -> Timestamptz,
    }
}

diesel::table! {
    rollout (cluster_id) {
        cluster_id -> Text,
    }
}

diesel::table! {
    schema_migrations (version) {
        version -> Int4,
        name -> Text,
        checksum -> Bytea,
        applied_at -> Timestamptz,
    }
}

diesel::table! {
    scope_accounting (machine_id, revision) {
        machine_id -> Text,
        revision -> Int8,
        start_observation -> Text,
        end_observation -> Text,
        facts -> Jsonb,
        principal_id -> Text,
        role -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    scope_freeze (machine_id, revision) {
        machine_id -> Text,
        revision -> Int8,
        principal_id -> Text,
        role -> Text,
        reason -> Nullable<Text>,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    scope_mark (machine_id, revision) {
        machine_id -> Text,
        revision -> Int8,
        from_state -> Text,
        to_state -> Text,
        observation_id -> Text,
        desired_release -> Nullable<Text>,
        missing -> Jsonb,
        facts -> Jsonb,
        principal_id -> Text,
        role -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    scope_release (machine_id, revision) {
        machine_id -> Text,
        revision -> Int8,
        mark_revision -> Int8,
        desired_release -> Nullable<Text>,
        facts -> Jsonb,
        principal_id -> Text,
        role -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    scope_unfreeze (machine_id, revision) {
        machine_id -> Text,
        revision -> Int8,
        principal_id -> Text,
        role -> Text,
        reason -> Text,
        epoch -> Text,
        act_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    staging_claim (id) {
        id -> Text,
        kind -> Text,
        mode -> Text,
        source -> Text,
        state -> Text,
        review -> Nullable<Text>,
        cluster_id -> Text,
        draft_id -> Text,
        machine_id -> Nullable<Text>,
        drift_revision -> Nullable<Int8>,
        principal_id -> Text,
        role -> Text,
        idempotency_key -> Nullable<Text>,
        owner -> Text,
        owner_gen -> Int8,
        owner_epoch -> Text,
        epoch -> Text,
        lease_until -> Timestamptz,
        expires_at -> Timestamptz,
        created_at -> Timestamptz,
        payload -> Nullable<Text>,
        payload_digest -> Nullable<Bytea>,
    }
}

diesel::table! {
    timeline_event (seq) {
        seq -> Int8,
        machine_id -> Nullable<Text>,
        operation_id -> Nullable<Text>,
        number -> Int8,
        kind -> Text,
        plan_id -> Nullable<Text>,
        principal_id -> Nullable<Text>,
        role -> Nullable<Text>,
        controller -> Nullable<Text>,
        owner_gen -> Nullable<Int8>,
        epoch -> Text,
        act_id -> Nullable<Text>,
        at -> Timestamptz,
        data -> Jsonb,
    }
}

diesel::table! {
    use_time_check (machine_id, revision) {
        machine_id -> Text,
        revision -> Int8,
        plan_id -> Text,
        operation_id -> Nullable<Text>,
        key_name -> Text,
        key_version -> Int8,
        access_path -> Nullable<Text>,
        access_version -> Nullable<Int8>,
        access_created -> Nullable<Text>,
        outcome -> Text,
        cause -> Nullable<Text>,
        controller -> Text,
        epoch -> Text,
        at -> Timestamptz,
    }
}

diesel::joinable!(accounting -> act (act_id));
diesel::joinable!(accounting -> attempt (attempt_id));
diesel::joinable!(accounting -> machine (machine_id));
diesel::joinable!(accounting -> principal (principal_id));
diesel::joinable!(accounting -> recovery_epoch (epoch));
diesel::joinable!(act -> principal (principal_id));
diesel::joinable!(adoption_record -> import_base_revision (import_base_revision_id));
diesel::joinable!(adoption_record -> machine (machine_id));
diesel::joinable!(adoption_record -> observation (observation_id));
diesel::joinable!(adoption_record -> operation (operation_id));
diesel::joinable!(adoption_record -> plan (plan_id));
diesel::joinable!(adoption_record -> recovery_epoch (epoch));
diesel::joinable!(adoption_record -> release (release_id));
diesel::joinable!(approval -> act (act_id));
diesel::joinable!(approval -> machine (machine_id));
diesel::joinable!(approval -> plan (plan_id));
diesel::joinable!(approval -> principal (principal_id));
diesel::joinable!(approval -> recovery_epoch (epoch));
diesel::joinable!(approval_revocation -> act (act_id));
diesel::joinable!(approval_revocation -> approval (approval_id));
diesel::joinable!(approval_revocation -> machine (machine_id));
diesel::joinable!(approval_revocation -> plan (plan_id));
diesel::joinable!(approval_revocation -> principal (principal_id));
diesel::joinable!(approval_revocation -> recovery_epoch (epoch));
diesel::joinable!(assignment_fragment -> assignment_revision (assignment_revision_id));
diesel::joinable!(assignment_profile -> assignment_revision (assignment_revision_id));
diesel::joinable!(assignment_revision -> draft (draft_id));
diesel::joinable!(assignment_revision -> principal (author_id));
diesel::joinable!(assignment_revision -> recovery_epoch (epoch));
diesel::joinable!(attempt -> machine (machine_id));
diesel::joinable!(attempt -> observation (observation_id));
diesel::joinable!(attempt -> operation (operation_id));
diesel::joinable!(attempt -> recovery_epoch (owner_epoch));
diesel::joinable!(automation_token -> principal (principal_id));
diesel::joinable!(automation_token -> recovery_epoch (epoch));
diesel::joinable!(cluster -> principal (created_by));
diesel::joinable!(cluster -> recovery_epoch (epoch));
diesel::joinable!(decommission -> act (act_id));
diesel::joinable!(decommission -> machine (machine_id));
diesel::joinable!(decommission -> principal (principal_id));
diesel::joinable!(decommission -> recovery_epoch (epoch));
diesel::joinable!(dependency_alert -> dependency_status (dependency_id));
diesel::joinable!(dependency_alert -> recovery_epoch (epoch));
diesel::joinable!(dependency_alert_release -> dependency_alert (alert_id));
diesel::joinable!(dependency_alert_release -> release (release_id));
diesel::joinable!(draft -> cluster (cluster_id));
diesel::joinable!(draft -> principal (created_by));
diesel::joinable!(draft -> recovery_epoch (epoch));
diesel::joinable!(draft_entry -> assignment_revision (assignment_revision_id));
diesel::joinable!(draft_entry -> draft (draft_id));
diesel::joinable!(draft_entry -> fragment_revision (fragment_revision_id));
diesel::joinable!(draft_entry -> head (head_id));
diesel::joinable!(draft_entry -> import_base_revision (import_base_revision_id));
diesel::joinable!(draft_entry -> machine (machine_id));
diesel::joinable!(draft_entry -> profile_revision (profile_revision_id));
diesel::joinable!(drift_record -> machine (machine_id));
diesel::joinable!(drift_record -> operation (late_landing));
diesel::joinable!(fragment_revision -> cluster (cluster_id));
diesel::joinable!(fragment_revision -> draft (draft_id));
diesel::joinable!(fragment_revision -> principal (author_id));
diesel::joinable!(fragment_revision -> recovery_epoch (epoch));
diesel::joinable!(fragment_revision -> staging_claim (claim_id));
diesel::joinable!(head -> assignment_revision (assignment_revision_id));
diesel::joinable!(head -> cluster (cluster_id));
diesel::joinable!(head -> fragment_revision (fragment_revision_id));
diesel::joinable!(head -> machine (machine_id));
diesel::joinable!(head -> profile_revision (profile_revision_id));
diesel::joinable!(idempotency_record -> act (act_id));
diesel::joinable!(idempotency_record -> operation (operation_id));
diesel::joinable!(idempotency_record -> principal (principal_id));
diesel::joinable!(idempotency_record -> recovery_epoch (epoch));
diesel::joinable!(identity_revocation -> act (act_id));
diesel::joinable!(identity_revocation -> recovery_epoch (epoch));
diesel::joinable!(import_base_revision -> draft (draft_id));
diesel::joinable!(import_base_revision -> principal (author_id));
diesel::joinable!(import_base_revision -> recovery_epoch (epoch));
diesel::joinable!(import_base_revision -> staging_claim (claim_id));
diesel::joinable!(installation_state -> recovery_epoch (current_epoch));
diesel::joinable!(machine -> cluster (cluster_id));
diesel::joinable!(machine -> principal (created_by));
diesel::joinable!(machine_endpoint_change -> act (act_id));
diesel::joinable!(machine_endpoint_change -> machine (machine_id));
diesel::joinable!(machine_endpoint_change -> principal (principal_id));
diesel::joinable!(machine_endpoint_change -> recovery_epoch (epoch));
diesel::joinable!(machine_state -> machine (machine_id));
diesel::joinable!(machine_state -> operation (applied_operation));
diesel::joinable!(observation_start -> machine (machine_id));
diesel::joinable!(observation_start -> operation (operation_id));
diesel::joinable!(observation_start -> plan (plan_id));
diesel::joinable!(observation_start -> recovery_epoch (epoch));
diesel::joinable!(operation -> cluster (cluster_id));
diesel::joinable!(operation -> draft (draft_id));
diesel::joinable!(operation -> import_base_revision (result_import_base));
diesel::joinable!(operation -> machine (machine_id));
diesel::joinable!(operation -> plan (plan_id));
diesel::joinable!(operation -> principal (created_by));
diesel::joinable!(operation -> staging_claim (claim_id));
diesel::joinable!(plan -> act (act_id));
diesel::joinable!(plan -> assignment_revision (assignment_revision_id));
diesel::joinable!(plan -> cluster (cluster_id));
diesel::joinable!(plan -> head (assignment_head_id));
diesel::joinable!(plan -> import_base_revision (import_base_revision_id));
diesel::joinable!(plan -> principal (principal_id));
diesel::joinable!(plan -> recovery_epoch (epoch));
diesel::joinable!(plan_cancellation -> act (act_id));
diesel::joinable!(plan_cancellation -> machine (machine_id));
diesel::joinable!(plan_cancellation -> plan (plan_id));
diesel::joinable!(plan_cancellation -> principal (principal_id));
diesel::joinable!(plan_cancellation -> recovery_epoch (epoch));
diesel::joinable!(plan_state -> approval (approval_id));
diesel::joinable!(plan_state -> operation (operation_id));
diesel::joinable!(plan_state -> plan (plan_id));
diesel::joinable!(profile_pin -> fragment_revision (fragment_revision_id));
diesel::joinable!(profile_pin -> profile_revision (profile_revision_id));
diesel::joinable!(profile_revision -> cluster (cluster_id));
diesel::joinable!(profile_revision -> draft (draft_id));
diesel::joinable!(profile_revision -> principal (author_id));
diesel::joinable!(profile_revision -> recovery_epoch (epoch));
diesel::joinable!(provenance -> fragment_revision (overridden_by));
diesel::joinable!(recovery_epoch -> principal (principal_id));
diesel::joinable!(recovery_exit -> act (act_id));
diesel::joinable!(recovery_exit -> principal (principal_id));
diesel::joinable!(recovery_exit -> recovery_epoch (epoch));
diesel::joinable!(reference_row -> cluster (cluster_id));
diesel::joinable!(reference_row -> fragment_revision (fragment_revision_id));
diesel::joinable!(reference_row -> import_base_revision (import_base_revision_id));
diesel::joinable!(release -> cluster (cluster_id));
diesel::joinable!(release -> principal (published_by));
diesel::joinable!(release -> recovery_epoch (epoch));
diesel::joinable!(release_machine -> assignment_revision (assignment_revision_id));
diesel::joinable!(release_machine -> head (assignment_head_id));
diesel::joinable!(release_machine -> import_base_revision (import_base_revision_id));
diesel::joinable!(release_machine -> machine (machine_id));
diesel::joinable!(release_machine -> observation (observation_id));
diesel::joinable!(release_machine -> release (release_id));
diesel::joinable!(release_source -> assignment_revision (assignment_revision_id));
diesel::joinable!(release_source -> fragment_revision (fragment_revision_id));
diesel::joinable!(release_source -> head (head_id));
diesel::joinable!(release_source -> profile_revision (profile_revision_id));
diesel::joinable!(release_source -> release (release_id));
diesel::joinable!(response -> attempt (attempt_id));
diesel::joinable!(response -> machine (machine_id));
diesel::joinable!(response -> recovery_epoch (epoch));
diesel::joinable!(restored_backup -> recovery_epoch (epoch));
diesel::joinable!(rollout -> cluster (cluster_id));
diesel::joinable!(scope_accounting -> act (act_id));
diesel::joinable!(scope_accounting -> machine (machine_id));
diesel::joinable!(scope_accounting -> principal (principal_id));
diesel::joinable!(scope_accounting -> recovery_epoch (epoch));
diesel::joinable!(scope_freeze -> act (act_id));
diesel::joinable!(scope_freeze -> machine (machine_id));
diesel::joinable!(scope_freeze -> principal (principal_id));
diesel::joinable!(scope_freeze -> recovery_epoch (epoch));
diesel::joinable!(scope_mark -> act (act_id));
diesel::joinable!(scope_mark -> machine (machine_id));
diesel::joinable!(scope_mark -> observation (observation_id));
diesel::joinable!(scope_mark -> principal (principal_id));
diesel::joinable!(scope_mark -> recovery_epoch (epoch));
diesel::joinable!(scope_mark -> release (desired_release));
diesel::joinable!(scope_release -> act (act_id));
diesel::joinable!(scope_release -> machine (machine_id));
diesel::joinable!(scope_release -> principal (principal_id));
diesel::joinable!(scope_release -> recovery_epoch (epoch));
diesel::joinable!(scope_release -> release (desired_release));
diesel::joinable!(scope_unfreeze -> act (act_id));
diesel::joinable!(scope_unfreeze -> machine (machine_id));
diesel::joinable!(scope_unfreeze -> principal (principal_id));
diesel::joinable!(scope_unfreeze -> recovery_epoch (epoch));
diesel::joinable!(staging_claim -> cluster (cluster_id));
diesel::joinable!(staging_claim -> principal (principal_id));
diesel::joinable!(timeline_event -> act (act_id));
diesel::joinable!(timeline_event -> machine (machine_id));
diesel::joinable!(timeline_event -> operation (operation_id));
diesel::joinable!(timeline_event -> plan (plan_id));
diesel::joinable!(timeline_event -> principal (principal_id));
diesel::joinable!(timeline_event -> recovery_epoch (epoch));
diesel::joinable!(use_time_check -> machine (machine_id));
diesel::joinable!(use_time_check -> operation (operation_id));
diesel::joinable!(use_time_check -> plan (plan_id));
diesel::joinable!(use_time_check -> recovery_epoch (epoch));

diesel::allow_tables_to_appear_in_same_query!(
    accounting,
    act,
    adoption_record,
    approval,
    approval_revocation,
    assignment_fragment,
    assignment_profile,
    assignment_revision,
    attempt,
    automation_token,
    cluster,
    decommission,
    dependency_alert,
    dependency_alert_release,
    dependency_effective,
    dependency_encryption,
    dependency_monitor,
    dependency_reproduction,
    dependency_status,
    draft,
    draft_entry,
    drift_record,
    fragment_revision,
    head,
    idempotency_record,
    identity_revocation,
    import_base_revision,
    installation_state,
    machine,
    machine_endpoint_change,
    machine_state,
    observation,
    observation_start,
    operation,
    plan,
    plan_cancellation,
    plan_state,
    principal,
    profile_pin,
    profile_revision,
    provenance,
    recovery_epoch,
    recovery_exit,
    reference_row,
    release,
    release_machine,
    release_source,
    response,
    restored_backup,
    rollout,
    schema_migrations,
    scope_accounting,
    scope_freeze,
    scope_mark,
    scope_release,
    scope_unfreeze,
    staging_claim,
    timeline_event,
    use_time_check,
);
