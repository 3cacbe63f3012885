//! What the clients log: classes, never a token, a value or a word of the provider's.

use std::cell::RefCell;
use std::io::Write;
use std::time::Duration;

use bronzeward_engine::ports::provider::IngestionSecrets;
use bronzeward_harness::openbao::{Identity, OpenBao, random_name, write_private};

use crate::common::{Clients, cluster, path_in, string, text};
use crate::states::{Sample, outcomes};

thread_local! {
    /// What was logged on this thread, once it is asked for. The subscriber is the whole
    /// process's: one of a thread alone is passed over by events that another thread met first.
    static LOGGED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

struct OfThisThread;

impl Write for OfThisThread {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| {
            if let Some(logged) = logged {
                logged.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts the log of this thread, at every level.
fn keep_log() {
    let subscriber = tracing_subscriber::fmt()
        .with_writer(|| OfThisThread)
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    LOGGED.set(Some(Vec::new()));
}

/// What was logged since the last call.
fn logged() -> String {
    String::from_utf8(LOGGED.replace(Some(Vec::new())).unwrap()).unwrap()
}

/// At every level, through every method, under a dead token, a refused one, a sealed and a
/// silent provider and a value too large.
#[tokio::test]
async fn a_log_names_identity_call_and_class_and_nothing_that_was_sent_or_answered() {
    keep_log();

    let bao = OpenBao::own().await.unwrap();
    let sample = Sample::on(&bao).await;
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join("dead");
    let token = format!("s.planted-{}", random_name());
    write_private(&dead, &token).unwrap();
    let value = format!("planted-value-{}", random_name());
    let talosconfig = format!("planted-talosconfig-{}", random_name());
    let id = sample.cluster.to_string();
    bao.root()
        .write_talosconfig(&id, &talosconfig)
        .await
        .unwrap();
    logged();

    let run = async |clients: Clients| {
        outcomes(&clients, &sample).await;
        let path = path_in(cluster());
        clients
            .ingestion
            .create_generation(&path, &string(&value))
            .await;
        let too_large = string(&value.repeat(100_000));
        clients.ingestion.create_generation(&path, &too_large).await;
        let _ = clients.ingestion.encrypt_staging(&text(&value)).await;
        logged()
    };
    let under = |file: &std::path::Path, patience: u64| {
        Clients::with(bao.address(), Duration::from_millis(patience), |_| {
            file.to_owned()
        })
    };
    let works = run(Clients::of(&bao)).await;
    let dead_token = run(under(&dead, 20_000)).await;
    assert!(dead_token.contains("token=\"dead\""), "{dead_token}");
    let refused = run(under(&bao.token_file(Identity::OrphanReport), 20_000)).await;
    assert!(refused.contains("token=\"valid\""), "{refused}");
    assert!(!refused.contains("token=\"dead\""));
    bao.seal().await.unwrap();
    let sealed = run(Clients::of(&bao)).await;
    assert!(
        sealed.contains("failure=\"provider-unavailable\""),
        "{sealed}"
    );
    bao.pause().unwrap();
    let silent = run(under(&bao.token_file(Identity::Ingestion), 200)).await;
    bao.resume().unwrap();
    assert!(
        silent.contains("failure=\"provider-unreachable\""),
        "{silent}"
    );
    std::fs::remove_file(&dead).unwrap();
    let none = run(under(&dead, 20_000)).await;
    assert!(none.contains("reason=\"unreadable\""), "{none}");

    let all = [works, dead_token, refused, sealed, silent, none].concat();
    let tokens: Vec<String> = Identity::ALL
        .iter()
        .map(|identity| std::fs::read_to_string(bao.token_file(*identity)).unwrap())
        .collect();
    let planted = [&token, &value, &talosconfig];
    let theirs = [
        "permission denied",
        "Vault is sealed",
        "error occurred",
        "vault:v",
    ];
    let never = planted.iter().map(|p| p.as_str()).chain(theirs);
    for text in never.chain(tokens.iter().map(|token| token.trim())) {
        assert!(!all.contains(text), "a log line holds what it must not");
    }
}
