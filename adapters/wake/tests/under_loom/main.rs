//! The crate's concurrency in every order that threads can take. Run by `./dev test loom`,
//! which builds the crate with loom's lock; in any other build this program is empty.
//!
//! A test is a model, a property and its controls: the test runs itself again in a process
//! of its own with a mistake made, once for each mistake it names, and that run must fail
//! with the words it names. A run that fails is then known to be one that can.

#![cfg(loom)]

mod bell;
mod cache;
mod pool;

use std::any::type_name_of_val;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bronzeward_wake::Flaw;
use loom::future::block_on;

/// How often a thread may be stopped where it could go on; `LOOM_MAX_PREEMPTIONS` sets
/// another bound. Without one, three threads have orders for days.
const PREEMPTIONS: usize = 2;

/// What loom says when nobody can go on.
const STUCK: &str = "deadlock";

/// Runs a model in all its orders, then the controls. The model is a closure of the test
/// itself: its type names the test.
fn holds(model: impl Fn() + Send + Sync + 'static, controls: &[(Flaw, &str)]) {
    let own = type_name_of_val(&model);
    let own = own.trim_end_matches("::{{closure}}");
    let (_, own) = own.split_once("::").expect("a path of this crate");
    let orders = &*Box::leak(Box::new(AtomicUsize::new(0)));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(move || {
        orders.fetch_add(1, Ordering::Relaxed);
        model();
    });
    let orders = orders.load(Ordering::Relaxed);
    assert!(orders > 1, "there is only one order, so nothing was tested");
    println!("{own}: {orders} orders");
    if std::env::var_os(Flaw::VARIABLE).is_some() {
        return;
    }
    for (flaw, words) in controls {
        let output = Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", own, "--nocapture", "--test-threads=1"])
            .env(Flaw::VARIABLE, format!("{flaw:?}"))
            .output()
            .expect("started");
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said += &String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("running 1 test"), "{own} is not its name");
        let caught = !output.status.success() && said.contains(words);
        assert!(caught, "{flaw:?} is not caught:\n{said}");
    }
}

/// Begins to wait and gives up unless that ends at once.
fn try_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    block_on(look_at(future.as_mut()))
}

/// Polls a future that goes on elsewhere.
async fn look_at<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[test]
fn every_mistake_is_caught_by_some_property() {
    let known = include_str!("../../src/sync.rs");
    let (_, known) = known.split_once("pub enum Flaw {").expect("the mistakes");
    let (known, _) = known.split_once("\n}").expect("the end of the mistakes");
    let names = known.lines().map(str::trim);
    let names: Vec<_> = names.filter_map(|line| line.strip_suffix(',')).collect();
    assert!(names.len() > 10);
    let tests = [
        include_str!("bell.rs"),
        include_str!("cache.rs"),
        include_str!("pool.rs"),
    ];
    for name in names {
        let used = format!("(Flaw::{name}, ");
        assert!(
            tests.iter().any(|test| test.contains(&used)),
            "no property must catch {name}"
        );
    }
}
