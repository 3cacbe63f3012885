//! Every method in every state the provider can be in, beside the state in which it works.

use std::fs;
use std::path::Path;
use std::time::Duration;

use bronzeward_core::dependency::Answer;
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::id::ClusterId;
use bronzeward_core::idempotency::DigestKey;
use bronzeward_engine::ports::provider::{
    Ciphertext, CompilerSecrets, Creation, DependencyMetadata, ExecutorSecrets, Failure,
    GenerationDirectory, IngestionSecrets, OrphanListing, TokenProbe, TokenState,
};
use bronzeward_harness::openbao::{OpenBao, random_name, write_private};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::common::{Clients, cluster, created, path_in, shared, string, text};

/// Things that exist, so that only the provider's state decides an outcome.
pub struct Sample {
    pub cluster: ClusterId,
    pub path: GenerationPath,
    pub staged: Ciphertext,
    pub artifact: Ciphertext,
}

impl Sample {
    pub async fn on(bao: &OpenBao) -> Sample {
        let clients = Clients::of(bao);
        let (path, _) = created(&clients.ingestion, &string("v")).await;
        bao.root()
            .write_talosconfig(&path.cluster.to_string(), "context: c\n")
            .await
            .unwrap();
        Sample {
            cluster: path.cluster,
            path,
            staged: clients
                .ingestion
                .encrypt_staging(&text("envelope"))
                .await
                .unwrap(),
            artifact: clients
                .compiler
                .encrypt_artifact(&text("machine: {}"))
                .await
                .unwrap(),
        }
    }

    /// For a stand-in, which holds nothing.
    pub fn made_up() -> Sample {
        let path = path_in(cluster());
        let ciphertext = Ciphertext::parse("vault:v1:QUJD").unwrap();
        Sample {
            cluster: path.cluster,
            path,
            staged: ciphertext.clone(),
            artifact: ciphertext,
        }
    }
}

fn answered<F>(answer: Answer<F>) -> Result<(), Failure> {
    match answer {
        Answer::Answered {
            status: 200,
            facts: Some(_),
            ..
        } => Ok(()),
        Answer::Answered { status: 403, .. } => Err(Failure::Denied),
        Answer::Answered { status: 404, .. } => Err(Failure::Absent),
        Answer::Answered { status: 503, .. } => Err(Failure::Unavailable),
        Answer::Answered { .. } => Err(Failure::Unreadable),
        Answer::Unreachable => Err(Failure::Unreachable),
    }
}

/// The outcome of each method but the create, which is unlike the others.
pub async fn outcomes(c: &Clients, s: &Sample) -> Vec<(&'static str, Result<(), Failure>)> {
    let key = DigestKey {
        name: "bw-digest".into(),
        version: 1,
    };
    let value = text("value");
    vec![
        (
            "ingestion talos",
            c.ingestion.read_talos_access(s.cluster).await.map(drop),
        ),
        (
            "baseline",
            c.ingestion.encrypt_baseline(&value).await.map(drop),
        ),
        (
            "staging",
            c.ingestion.encrypt_staging(&value).await.map(drop),
        ),
        (
            "unstaging",
            c.ingestion.decrypt_staging(&s.staged).await.map(drop),
        ),
        (
            "digests",
            c.ingestion
                .keyed_digests(std::slice::from_ref(&value))
                .await
                .map(drop),
        ),
        (
            "digest under",
            c.ingestion.recompute_digest(&key, &value).await.map(drop),
        ),
        (
            "generation",
            c.compiler.read_generation(&s.path, 1).await.map(drop),
        ),
        (
            "artifact",
            c.compiler.encrypt_artifact(&value).await.map(drop),
        ),
        (
            "executor talos",
            c.executor.read_talos_access(s.cluster).await.map(drop),
        ),
        (
            "opening",
            c.executor
                .decrypt_artifact(&s.artifact, s.artifact.key_version())
                .await
                .map(drop),
        ),
        (
            "kv metadata",
            answered(c.metadata.kv_metadata(&s.path.to_string()).await),
        ),
        ("key", answered(c.metadata.transit_key("bw-artifact").await)),
        (
            "listing",
            c.orphans
                .list(GenerationDirectory::Clusters)
                .await
                .map(drop),
        ),
    ]
}

pub async fn all_are(c: &Clients, s: &Sample, expected: Result<(), Failure>) {
    for (method, outcome) in outcomes(c, s).await {
        assert_eq!(outcome, expected, "{method}");
    }
}

async fn token_states(c: &Clients) -> [TokenState; 5] {
    [
        c.ingestion.probe_token().await,
        c.compiler.probe_token().await,
        c.executor.probe_token().await,
        c.metadata.probe_token().await,
        c.orphans.probe_token().await,
    ]
}

async fn create(c: &Clients) -> (GenerationPath, Creation) {
    let path = path_in(cluster());
    let outcome = c.ingestion.create_generation(&path, &string("v")).await;
    (path, outcome)
}

/// B34: what a client gave up on may still be done, so a timed-out write is unknown.
#[tokio::test]
async fn a_sealed_a_silent_and_a_stopped_provider_fail_every_method_by_their_class() {
    let mut bao = OpenBao::own().await.unwrap();
    let sample = Sample::on(&bao).await;
    let clients = Clients::of(&bao);
    let hasty = Clients::with(bao.address(), Duration::from_millis(300), |i| {
        bao.token_file(i)
    });
    all_are(&clients, &sample, Ok(())).await;
    assert_eq!(token_states(&clients).await, [TokenState::Valid; 5]);

    bao.seal().await.unwrap();
    all_are(&clients, &sample, Err(Failure::Unavailable)).await;
    assert_eq!(
        create(&clients).await.1,
        Creation::Unknown(Failure::Unavailable)
    );
    let undecided = TokenState::Undecided(Failure::Unavailable);
    assert_eq!(token_states(&clients).await, [undecided; 5]);
    bao.unseal().await.unwrap();
    all_are(&clients, &sample, Ok(())).await;

    bao.pause().unwrap();
    all_are(&hasty, &sample, Err(Failure::Unreachable)).await;
    let mut abandoned = Vec::new();
    for _ in 0..10 {
        let (path, outcome) = create(&hasty).await;
        assert_eq!(outcome, Creation::Unknown(Failure::Unreachable));
        abandoned.push(path);
    }
    bao.resume().unwrap();
    // Most of them are done, though not each: the server may notice the closed connection.
    let deadline = Instant::now() + Duration::from_secs(20);
    while !any_exists(&bao, &abandoned).await {
        assert!(Instant::now() < deadline, "no abandoned write was done");
        sleep(Duration::from_millis(20)).await;
    }
    all_are(&clients, &sample, Ok(())).await;

    bao.stop().await.unwrap();
    all_are(&clients, &sample, Err(Failure::Unreachable)).await;
    assert_eq!(
        create(&clients).await.1,
        Creation::Unknown(Failure::Unreachable)
    );
    bao.start_again().await.unwrap();
    all_are(&clients, &sample, Ok(())).await;
    assert!(matches!(create(&clients).await.1, Creation::Created { .. }));
}

async fn any_exists(bao: &OpenBao, paths: &[GenerationPath]) -> bool {
    let root = bao.root();
    for path in paths {
        if root.kv_metadata(&path.to_string()).await.unwrap().status == 200 {
            return true;
        }
    }
    false
}

/// B7: right after an unseal the node is a standby that answers writes by 500,
/// and for a moment by a redirect to itself.
#[tokio::test]
async fn a_write_to_a_node_that_is_not_active_yet_is_unknown_and_nothing_else_is_made_of_it() {
    let bao = OpenBao::own().await.unwrap();
    let clients = Clients::of(&bao);
    let root = bao.root();
    let key = fs::read_to_string(bao.dir().join("unseal-key")).unwrap();
    let mut refused = 0;
    for _ in 0..6 {
        bao.seal().await.unwrap();
        let body = json!({ "key": key.trim() });
        root.expect("PUT", "sys/unseal", Some(body), 200)
            .await
            .unwrap();
        loop {
            match create(&clients).await.1 {
                Creation::Created { .. } => break,
                Creation::Unknown(Failure::Unavailable) => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(refused > 0, "the node was never met before it was active");
}

/// B8: with its audit device failing, a node answers every call by 500 and stays healthy.
#[tokio::test]
async fn a_node_that_cannot_write_its_audit_log_is_unavailable_and_its_writes_are_unknown() {
    let bao = OpenBao::own().await.unwrap();
    let sample = Sample::on(&bao).await;
    let clients = Clients::of(&bao);
    // The log's place is taken by a folder, and the server is told to open it again.
    let (log, aside) = (bao.audit_log(), bao.dir().join("audit.aside"));
    fs::rename(&log, &aside).unwrap();
    fs::create_dir(&log).unwrap();
    hang_up(bao.pid().unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    while create(&clients).await.1 != Creation::Unknown(Failure::Unavailable) {
        assert!(Instant::now() < deadline, "the audit device did not fail");
        sleep(Duration::from_millis(20)).await;
    }
    for (method, outcome) in outcomes(&clients, &sample).await {
        let metadata = matches!(method, "kv metadata" | "key");
        let class = if metadata {
            Failure::Unreadable
        } else {
            Failure::Unavailable
        };
        assert_eq!(outcome, Err(class), "{method}");
    }
    let health = bao.root().call("GET", "sys/health", None).await.unwrap();
    assert_eq!(health.status, 200);

    fs::remove_dir(&log).unwrap();
    fs::rename(&aside, &log).unwrap();
    hang_up(bao.pid().unwrap());
    let deadline = Instant::now() + Duration::from_secs(20);
    while !matches!(create(&clients).await.1, Creation::Created { .. }) {
        assert!(
            Instant::now() < deadline,
            "the audit device did not recover"
        );
        sleep(Duration::from_millis(20)).await;
    }
    all_are(&clients, &sample, Ok(())).await;
}

/// The server reopens its log files.
fn hang_up(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
}

fn with_file(bao: &OpenBao, file: &Path) -> Clients {
    Clients::with(bao.address(), Duration::from_secs(20), |_| file.to_owned())
}

/// The control of each is the same call under the identity's own policy.
#[tokio::test]
async fn a_token_without_the_grant_and_a_dead_token_are_denied_every_method() {
    let bao = shared();
    let sample = Sample::on(bao).await;
    all_are(&Clients::of(bao), &sample, Ok(())).await;
    assert!(matches!(
        create(&Clients::of(bao)).await.1,
        Creation::Created { .. }
    ));

    let other = "path \"secret/data/elsewhere\" { capabilities = [\"read\"] }";
    let granted = bao
        .identity_with(&format!("nothing-{}", random_name()), other)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("dead");
    write_private(&dead, "s.thereisnosuchtokenhere0").unwrap();
    for (file, state) in [(granted, TokenState::Valid), (dead, TokenState::Dead)] {
        let clients = with_file(bao, &file);
        all_are(&clients, &sample, Err(Failure::Denied)).await;
        // Not told apart from an existing path (B10): both may exist.
        assert_eq!(create(&clients).await.1, Creation::MayExist);
        assert_eq!(token_states(&clients).await, [state; 5]);
    }
}

#[tokio::test]
async fn a_token_file_that_others_may_read_stops_every_method_before_it_asks() {
    use std::os::unix::fs::PermissionsExt;
    let bao = shared();
    let sample = Sample::on(bao).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let root = fs::read_to_string(bao.root_token_file()).unwrap();
    write_private(&file, root.trim()).unwrap();
    let clients = with_file(bao, &file);
    all_are(&clients, &sample, Ok(())).await;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    for (method, outcome) in outcomes(&clients, &sample).await {
        let metadata = matches!(method, "kv metadata" | "key");
        let class = if metadata {
            Failure::Unreachable
        } else {
            Failure::Credential
        };
        assert_eq!(outcome, Err(class), "{method}");
    }
    assert_eq!(
        create(&clients).await.1,
        Creation::Refused(Failure::Credential)
    );
}

#[tokio::test]
async fn what_is_not_there_is_absent_or_refused_for_good() {
    let bao = OpenBao::own().await.unwrap();
    let sample = Sample::on(&bao).await;
    let clients = Clients::of(&bao);
    let root = bao.root();
    for mount in ["secret", "transit"] {
        root.expect("DELETE", &format!("sys/mounts/{mount}"), None, 204)
            .await
            .unwrap();
    }
    all_are(&clients, &sample, Err(Failure::Absent)).await;
    assert_eq!(create(&clients).await.1, Creation::MayExist);
}
