//! What the engine logs in a world: no secret of a node.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bronzeward_model::furniture::SECRETS;
use bronzeward_model::genesis::Genesis;
use bronzeward_model::seed::{End, Setting, keep_panics, run};
use tracing::Level;
use tracing::subscriber::with_default;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Everything that is logged meanwhile, at every level, with every field.
fn logged(act: impl FnOnce()) -> String {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    with_default(subscriber, act);
    let text = log.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    String::from_utf8(text).expect("a log is text")
}

fn secrets_in(log: &str) -> Vec<&str> {
    let secrets = SECRETS.iter().copied();
    secrets.filter(|secret| log.contains(secret)).collect()
}

/// Seeds that are logged: enough that imports, publications and dispatches fail in many ways.
const SEEDS: u64 = 8;

#[test]
fn the_engine_logs_no_secret_of_a_node() {
    keep_panics();
    let log = logged(|| {
        let genesis = Genesis::make().unwrap_or_else(|error| panic!("no genesis: {error}"));
        for seed in 0..SEEDS {
            assert_eq!(run(&genesis, seed, &Setting::default()).end, End::Clean);
        }
    });
    for event in ["event=\"adopted\"", " WARN ", "operation="] {
        assert!(log.contains(event), "{event} is never logged");
    }
    assert_eq!(secrets_in(&log), [""; 0]);
    let planted = logged(|| tracing::info!(value = SECRETS[0], "planted"));
    assert_eq!(secrets_in(&planted), [SECRETS[0]]);
}
