//! Tests of the client against the real worker, and against `testworker`, which has
//! faults. One lock keeps tests that count processes and descriptors alone.

mod confinement;
mod faults;
mod leaks;
mod rendering;
mod trees;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use bronzeward_core::secret::Plaintext;
use bronzeward_engine::ports::renderer::{RefusedClass, RenderError, Unavailable};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{MachineryRenderer, Settings};

/// Others may run beside a test that holds this for reading.
static ALONE: RwLock<()> = RwLock::const_new(());

async fn beside_others() -> RwLockReadGuard<'static, ()> {
    ALONE.read().await
}

async fn alone() -> RwLockWriteGuard<'static, ()> {
    ALONE.write().await
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program of the development stack.
fn program(variable: &str, name: &str) -> PathBuf {
    let path = std::env::var_os(variable)
        .map_or_else(|| repository().join(".dev/bin").join(name), PathBuf::from);
    assert!(
        path.is_file(),
        "{} is missing: `./dev up` builds it, or set {variable}",
        path.display()
    );
    path
}

fn worker() -> PathBuf {
    program("BRONZEWARD_RENDERER_WORKER", "renderer-worker")
}

/// The worker with faults, built once per test run: it is no program of the stack.
fn testworker() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let tests = std::env::current_exe().expect("this program has a path");
            let out = tests.with_file_name("renderer-testworker");
            let built = Command::new("go")
                .args(["build", "-trimpath", "-buildvcs=false", "-o"])
                .arg(&out)
                .arg("./internal/testworker")
                .env("CGO_ENABLED", "0")
                .current_dir(repository().join("adapters/machinery/worker"))
                .status();
            assert!(
                built.is_ok_and(|status| status.success()),
                "the test worker does not build: is go installed?"
            );
            out
        })
        .clone()
}

/// A fresh configuration; no two calls share a secret.
fn generated(flags: &[&str]) -> Plaintext {
    let out = Command::new(program("BRONZEWARD_TALOSGEN", "talosgen"))
        .args(flags)
        .output()
        .expect("talosgen starts");
    assert!(out.status.success(), "talosgen failed");
    Plaintext::new(String::from_utf8(out.stdout).expect("configurations are UTF-8"))
}

async fn renderer() -> MachineryRenderer {
    started(Settings::new(worker())).await
}

async fn started(settings: Settings) -> MachineryRenderer {
    MachineryRenderer::start(settings)
        .await
        .expect("the renderer starts")
}

/// A pool of faulty workers with limits that a test can wait for.
fn faulty(count: usize) -> Settings {
    Settings {
        count,
        deadline: Duration::from_millis(1500),
        memory: 192 << 20,
        ..Settings::new(testworker())
    }
}

fn text(text: &str) -> Plaintext {
    Plaintext::new(text.to_owned())
}

/// A composition that has the test worker fail in a way of its own.
fn fault(name: &str) -> Plaintext {
    text(&format!("# fault: {name}\n"))
}

fn refusal<T>(answer: Result<T, RenderError>) -> RefusedClass {
    match answer {
        Err(RenderError::Refused(refused)) => refused.class,
        Err(RenderError::Unavailable(why)) => panic!("no answer: {}", why.code()),
        Ok(_) => panic!("nothing was refused"),
    }
}

fn unavailable<T>(answer: Result<T, RenderError>) -> Unavailable {
    match answer {
        Err(RenderError::Unavailable(why)) => why,
        Err(RenderError::Refused(refused)) => panic!("refused: {}", refused.class.code()),
        Ok(_) => panic!("there was an answer"),
    }
}
