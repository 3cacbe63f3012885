//! What a worker may do: a probe inside tries each thing, once confined and once not.

use std::collections::BTreeMap;
use std::process::Command;

use bronzeward_engine::ports::renderer::Renderer;

use super::{alone, beside_others, fault, faulty, started, testworker};
use crate::{Confinement, MachineryRenderer, Settings, StartError};

fn report(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, verdict)| (name.to_owned(), verdict.to_owned()))
        .collect()
}

const FORBIDDEN: [&str; 14] = [
    "socket-inet",
    "socket-unix",
    "socketpair",
    "create-file",
    "make-folder",
    "list-folder",
    "read-file",
    "write-device",
    "read-process",
    "memory-file",
    "start-process",
    "signal-parent",
    "name-host",
    "io-uring",
];

#[tokio::test]
async fn a_confined_worker_is_refused_everything_and_has_its_own_descriptors_only() {
    let _beside = beside_others().await;
    let control = Command::new(testworker())
        .arg("probe")
        .output()
        .expect("the probe runs unconfined");
    let control = report(&String::from_utf8_lossy(&control.stdout));
    for name in FORBIDDEN {
        // A kernel or container may refuse io_uring to everybody.
        if name != "io-uring" {
            assert_eq!(control[name], "allowed", "{name} without confinement");
        }
    }
    let renderer = started(faulty(1)).await;
    assert!(renderer.confined().wholly());
    let confined = renderer
        .compose(&fault("probe"), &[])
        .await
        .expect("probed");
    let confined = report(confined.expose());
    for name in FORBIDDEN {
        assert_eq!(confined[name], "refused", "{name}");
    }
    assert_eq!(confined["descriptors"], "0,1,2,3");
    assert_eq!(confined["arguments"], "0");
    let environment: Vec<&str> = confined["environment"].split(' ').collect();
    assert_eq!(environment, ["GOMEMLIMIT=150994944", "GOTRACEBACK=none"]);
    renderer.stop().await;
}

#[tokio::test]
async fn a_worker_dumps_no_core_and_stands_in_the_root_folder() {
    let _beside = beside_others().await;
    let renderer = started(faulty(1)).await;
    let pid = renderer.idle_workers()[0];
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("limits");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name));
        line.and_then(|line| {
            line[name.len()..]
                .split_whitespace()
                .next()
                .map(str::to_owned)
        })
    };
    assert_eq!(limit("Max core file size").as_deref(), Some("0"));
    assert_eq!(limit("Max file size").as_deref(), Some("0"));
    assert_eq!(limit("Max open files").as_deref(), Some("64"));
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"));
    // Its folder and memory are readable to root alone: it is not dumpable.
    if let Ok(folder) = std::fs::read_link(format!("/proc/{pid}/cwd")) {
        assert_eq!(folder.to_str(), Some("/"));
    }
    renderer.stop().await;
}

#[tokio::test]
async fn a_missing_worker_or_another_program_is_said_at_start() {
    let _alone = alone().await;
    let missing = MachineryRenderer::start(Settings::new("/nonexistent/worker")).await;
    assert!(matches!(missing, Err(StartError::Missing(_))));
    let other = MachineryRenderer::start(Settings {
        confinement: Confinement::BestEffort,
        ..Settings::new("/bin/true")
    });
    assert!(matches!(
        other.await,
        Err(StartError::NotAWorker | StartError::Spawn(_))
    ));
}
