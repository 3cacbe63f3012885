//! Requests that hang, panic, crash and eat memory, while others go on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bronzeward_engine::ports::renderer::{RefusedClass, RenderError, Renderer, Unavailable};
use rustix::process::{Pid, Signal, kill_process};
use tokio::task::JoinSet;

use super::{beside_others, fault, faulty, refusal, started, text, unavailable};
use crate::Settings;

const GOOD: &str = "machine:\n  type: worker\n";

/// Long enough for a loaded machine to answer what is no hang.
const PATIENCE: Duration = Duration::from_secs(10);

async fn costs_one_worker_each(settings: Settings, faults: &[(&str, Unavailable)]) {
    let renderer = started(settings).await;
    let mut ended = 0;
    for (name, why) in faults {
        for _ in 0..2 {
            let answer = renderer.compose(&fault(name), &[]).await;
            assert_eq!(unavailable(answer), *why, "{name}");
            ended += 1;
            assert_eq!(
                renderer.workers_ended(),
                ended,
                "{name} was tried more than once"
            );
            renderer
                .compose(&text(GOOD), &[])
                .await
                .expect("composed after it");
        }
    }
    renderer.stop().await;
}

#[tokio::test]
async fn each_fault_has_its_class_costs_one_worker_and_is_the_same_again() {
    let _beside = beside_others().await;
    let hangs = [
        ("hang", Unavailable::Deadline),
        ("spin", Unavailable::Deadline),
    ];
    costs_one_worker_each(faulty(1), &hangs).await;
    let ends = [
        ("eat", Unavailable::Memory),
        ("exit", Unavailable::Crashed),
        ("overflow", Unavailable::Crashed),
    ];
    let patient = Settings {
        deadline: PATIENCE,
        ..faulty(1)
    };
    costs_one_worker_each(patient, &ends).await;
}

#[tokio::test]
async fn a_panic_is_a_refusal_and_costs_no_worker() {
    let _beside = beside_others().await;
    let renderer = started(faulty(1)).await;
    for name in ["panic", "nil", "panic"] {
        let answer = renderer.compose(&fault(name), &[]).await;
        assert_eq!(refusal(answer), RefusedClass::Panicked);
    }
    for name in ["misanswer", "empty"] {
        let answer = renderer.compose(&fault(name), &[]).await;
        assert_eq!(unavailable(answer), Unavailable::Protocol);
    }
    assert_eq!(renderer.workers_ended(), 0);
    renderer.stop().await;
}

#[tokio::test]
async fn a_hanging_request_holds_up_nobody_else() {
    let _beside = beside_others().await;
    let settings = Settings {
        deadline: PATIENCE,
        ..faulty(2)
    };
    let renderer = Arc::new(started(settings).await);
    let hanging = Arc::clone(&renderer);
    let hang = tokio::spawn(async move { hanging.compose(&fault("hang"), &[]).await });
    for _ in 0..50 {
        renderer.compose(&text(GOOD), &[]).await.expect("composed");
    }
    assert!(!hang.is_finished(), "the others waited for it");
    assert_eq!(
        unavailable(hang.await.expect("joined")),
        Unavailable::Deadline
    );
    renderer.stop().await;
}

#[tokio::test]
async fn a_request_waits_for_a_worker_no_longer_than_its_deadline() {
    let _beside = beside_others().await;
    let renderer = Arc::new(
        started(Settings {
            deadline: Duration::from_millis(400),
            ..faulty(1)
        })
        .await,
    );
    let mut asked = JoinSet::new();
    for _ in 0..3 {
        let renderer = Arc::clone(&renderer);
        asked.spawn(async move { unavailable(renderer.compose(&fault("hang"), &[]).await) });
    }
    let answers = asked.join_all().await;
    assert!(answers.contains(&Unavailable::Deadline) && answers.contains(&Unavailable::Busy));
    renderer.stop().await;
    assert_eq!(
        unavailable(renderer.compose(&text(GOOD), &[]).await),
        Unavailable::Stopped
    );
}

#[tokio::test]
async fn a_worker_that_dies_idle_is_replaced_without_a_request_noticing() {
    let _beside = beside_others().await;
    let renderer = started(faulty(1)).await;
    let pid = renderer.idle_workers()[0];
    kill_process(Pid::from_raw(pid as i32).expect("a pid"), Signal::KILL).expect("killed");
    // Dead is the last of its threads; the first alone can be a zombie before that.
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        threads <= 1 && !stat.contains(") S") && !stat.contains(") R")
    };
    while !gone() {
        tokio::task::yield_now().await;
    }
    renderer.compose(&text(GOOD), &[]).await.expect("composed");
    assert_ne!(renderer.idle_workers(), [pid]);
    renderer.stop().await;
}

#[tokio::test]
async fn a_caller_that_stops_waiting_leaves_the_worker_usable() {
    let _beside = beside_others().await;
    let renderer = started(faulty(1)).await;
    for _ in 0..20 {
        let base = text(GOOD);
        // Polled once, which sends it off, and dropped.
        tokio::select! {
            biased;
            _ = renderer.compose(&base, &[]) => panic!("it was answered before it was asked"),
            () = std::future::ready(()) => {}
        }
        renderer.compose(&base, &[]).await.expect("composed");
    }
    assert_eq!(renderer.workers_ended(), 0);
    renderer.stop().await;
}

/// What the descriptors of this process lead to, and its children by number.
fn held() -> (Vec<String>, Vec<u32>) {
    let own = std::process::id().to_string();
    let mut descriptors: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .expect("descriptors")
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        // Without the number of a socket or a pipe.
        .map(|target| {
            target
                .to_string_lossy()
                .replace(|each: char| each.is_ascii_digit(), "")
        })
        .collect();
    descriptors.sort();
    let children = std::fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after = stat.rsplit(") ").next().unwrap_or_default();
            after.split(' ').nth(1) == Some(own.as_str())
        })
        .collect();
    (descriptors, children)
}

/// Set in the process that runs the counting test by itself: the runtimes of tests
/// beside it would open and close descriptors of their own.
const BY_ITSELF: &str = "BRONZEWARD_TEST_BY_ITSELF";
const COUNTING: &str =
    "of_a_thousand_requests_with_faults_none_is_lost_or_retried_and_nothing_leaks";

// 1,000 requests, every tenth at fault: each is answered once, by its own class, and
// what is left is what was there before.
#[test]
fn of_a_thousand_requests_with_faults_none_is_lost_or_retried_and_nothing_leaks() {
    if std::env::var_os(BY_ITSELF).is_some() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        return runtime.expect("a runtime").block_on(a_thousand_requests());
    }
    let output = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", &format!("tests::faults::{COUNTING}")])
        .env(BY_ITSELF, "1")
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

async fn a_thousand_requests() {
    // The runtime's own descriptors are there before anything is counted.
    started(faulty(1)).await.stop().await;
    let before = held();
    let settings = Settings {
        deadline: PATIENCE,
        ..faulty(3)
    };
    let renderer = Arc::new(started(settings).await);
    let mut callers = JoinSet::new();
    for caller in 0..3usize {
        let renderer = Arc::clone(&renderer);
        callers.spawn(async move {
            let mut answers = BTreeMap::<&'static str, usize>::new();
            for number in (caller..1000).step_by(3) {
                let asked = match number {
                    n if n % 200 == 0 => "hang",
                    n if n % 100 == 50 => "eat",
                    n if n % 20 == 10 => "exit",
                    n if n % 20 == 5 => "panic",
                    _ => "",
                };
                let base = if asked.is_empty() {
                    text(GOOD)
                } else {
                    fault(asked)
                };
                let got = match renderer.compose(&base, &[]).await {
                    Ok(_) => "",
                    Err(RenderError::Refused(refused)) => refused.class.code(),
                    Err(RenderError::Unavailable(why)) => why.code(),
                };
                let expected = match asked {
                    "hang" => "deadline",
                    "eat" => "memory",
                    "exit" => "crashed",
                    "panic" => "panicked",
                    _ => "",
                };
                assert_eq!(got, expected, "request {number}");
                *answers.entry(got).or_default() += 1;
            }
            answers
        });
    }
    let mut total = BTreeMap::<&str, usize>::new();
    for answers in callers.join_all().await {
        for (answer, count) in answers {
            *total.entry(answer).or_default() += count;
        }
    }
    assert_eq!(total.values().sum::<usize>(), 1000, "a request was lost");
    let killed = total["deadline"] + total["memory"] + total["crashed"];
    assert!(total["deadline"] == 5 && total["memory"] == 10 && total["panicked"] == 50);
    assert_eq!(
        renderer.workers_ended(),
        killed as u64,
        "a request was retried"
    );
    assert_eq!(renderer.idle_workers().len(), 3);
    renderer.stop().await;
    drop(renderer);
    assert_eq!(held(), before, "descriptors or processes were left behind");
}
