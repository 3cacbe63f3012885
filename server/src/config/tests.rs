use super::*;

const LEAST: &str = "
listen: 127.0.0.1:0
database: {dsn: 'postgres://bronzeward@localhost/bronzeward'}
auth:
  oidc: {issuer: 'https://idp.example', audience: bronzeward, groupsClaim: groups}
  roles: {viewer: [bw-viewers], recovery-admin: [bw-recovery]}
";

fn refused(text: &str) -> ConfigError {
    let config = parse(text).and_then(|config| config.check().map(|()| config));
    match config {
        Ok(_) => panic!("the configuration was accepted"),
        Err(error) => error,
    }
}

#[test]
fn the_least_configuration_has_the_documented_defaults() {
    let config = parse(LEAST).unwrap();
    config.check().unwrap();
    assert_eq!(
        config.auth.oidc.max_token_lifetime.0,
        Duration::from_secs(900)
    );
    assert_eq!(config.auth.roles.recovery_admin, ["bw-recovery"]);
    let defaults = PlanDefaults::default();
    assert_eq!(defaults.max_attempts, 3);
    assert_eq!(defaults.transport_deadline.0, Duration::from_secs(60));
}

#[test]
fn an_unknown_key_is_refused_by_its_place() {
    let error = refused(&format!("{LEAST}colour: red\n"));
    assert_eq!(error.place, "colour");
    assert!(!error.to_string().contains("red"));
}

#[test]
fn a_value_of_the_wrong_form_is_named_by_place_and_never_shown() {
    let error = refused(&LEAST.replace("127.0.0.1:0", "planted-value"));
    assert_eq!(error.place, "listen");
    assert!(!error.to_string().contains("planted-value"));
}

#[test]
fn a_password_in_the_connection_string_is_refused() {
    for dsn in [
        "postgres://bronzeward:planted@localhost/bronzeward",
        "host=localhost password=planted",
        "postgres://localhost/bronzeward?password=planted",
    ] {
        let text = LEAST.replace("postgres://bronzeward@localhost/bronzeward", dsn);
        let error = refused(&text);
        assert_eq!(error.place, "database.dsn");
        assert!(!error.to_string().contains("planted"));
    }
}

#[test]
fn a_repeated_key_is_refused() {
    assert_eq!(
        refused(&format!("{LEAST}listen: 127.0.0.1:1\n")).place,
        "file"
    );
}

#[test]
fn execution_needs_a_maximum_transport_deadline_and_a_settle_of_thirty_seconds() {
    let error = refused(&format!("{LEAST}execution: {{instance: a}}\n"));
    assert_eq!(error.place, "execution");
    let short = "execution: {instance: a, maxTransportDeadline: 60s, settleFloor: 29s}";
    assert_eq!(
        refused(&format!("{LEAST}{short}\n")).place,
        "execution.settleFloor"
    );
}

#[test]
fn ingestion_timers_are_in_order() {
    let text = "ingestion: {instance: a, heartbeat: 15s, lease: 15s}";
    assert_eq!(refused(&format!("{LEAST}{text}\n")).place, "ingestion");
}

#[test]
fn a_denied_subject_names_a_human_or_a_service_identity_and_not_both() {
    for subject in ["{iss: a}", "{iss: a, sub: b, identity: c}", "{}"] {
        let text = LEAST.replace(
            "auth:\n",
            &format!("auth:\n  deniedSubjects: [{subject}]\n"),
        );
        assert_eq!(refused(&text).place, "auth.deniedSubjects[0]");
    }
}

#[test]
fn durations_and_sizes_need_their_unit() {
    assert_eq!(
        Lasting::parse("200ms"),
        Some(Lasting(Duration::from_millis(200)))
    );
    assert_eq!(
        Lasting::parse("5m"),
        Some(Lasting(Duration::from_secs(300)))
    );
    for text in ["30", "s", "-1s", "1.5s", "1d", "18446744073709551615h"] {
        assert_eq!(Lasting::parse(text), None, "{text}");
    }
    assert_eq!(Bytes::parse("512MiB"), Some(Bytes(512 << 20)));
    assert_eq!(Bytes::parse("512MB"), None);
}
