//! Where a value could go beside its answer: a worker's standard error, its core, the
//! temporary folders, its arguments and environment (IC-REN-2).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use bronzeward_engine::ports::renderer::{PlatformMode, RefusedClass, Renderer};

use super::{alone, fault, faulty, generated, refusal, renderer, started, testworker, text};
use crate::MachineryRenderer;

/// Files that changed since `since` in the places where temporary files and cores go,
/// and what a running process shows of itself.
fn surfaces(since: SystemTime, pids: &[u32]) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let folders = [
        std::env::temp_dir(),
        "/tmp".into(),
        "/var/tmp".into(),
        "/dev/shm".into(),
    ];
    for folder in folders.iter().chain([
        &PathBuf::from("/"),
        &std::env::current_dir().expect("a folder"),
    ]) {
        files(folder, since, 2, &mut found);
    }
    for pid in pids {
        for part in ["cmdline", "environ", "comm"] {
            let path = PathBuf::from(format!("/proc/{pid}/{part}"));
            if let Ok(content) = fs::read(&path) {
                found.push((path, content));
            }
        }
    }
    found
}

fn files(folder: &Path, since: SystemTime, depth: usize, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && depth > 1 && folder != Path::new("/") {
            files(&entry.path(), since, depth - 1, found);
        }
        let changed = entry.metadata().and_then(|meta| meta.modified());
        if kind.is_file()
            && changed.is_ok_and(|at| at >= since)
            && let Ok(content) = fs::read(entry.path())
        {
            found.push((entry.path(), content));
        }
    }
}

fn holding(surfaces: &[(PathBuf, Vec<u8>)], value: &str) -> Vec<PathBuf> {
    surfaces
        .iter()
        .filter(|(_, content)| find(content, value))
        .map(|(path, _)| path.clone())
        .collect()
}

fn find(content: &[u8], value: &str) -> bool {
    content
        .windows(value.len())
        .any(|window| window == value.as_bytes())
}

/// A secret of the configuration, unique to this run.
fn token(configuration: &str) -> String {
    let line = configuration
        .lines()
        .find_map(|line| line.trim().strip_prefix("token: "));
    line.expect("a machine token").to_owned()
}

async fn all_ends(renderer: &MachineryRenderer, value: &str) {
    let base = text(&format!("machine:\n  type: worker\n  token: {value}\n"));
    renderer.compose(&base, &[]).await.expect("success");
    let refused = text(&format!("machine:\n  certSANs: {value}\n"));
    assert!(renderer.compose(&base, &[refused]).await.is_err());
    for end in ["panic", "overflow", "exit", "hang", "eat", "write"] {
        // The value is in the request, and the panic's text is the request.
        let base = text(&format!("# fault: {end}\n# {value}\n"));
        let answer = renderer.compose(&base, &[]).await;
        assert_eq!(answer.is_ok(), end == "write", "{end}");
    }
}

// covers: IC-REN-2
#[tokio::test]
async fn no_value_is_left_anywhere_after_success_refusal_panic_and_kill() {
    let _alone = alone().await;
    let since = SystemTime::now();

    // The product's worker, with a real configuration.
    let configuration = generated(&["-base", "generated"]);
    let value = token(configuration.expose());
    let product = renderer().await;
    product
        .compose(&configuration, &[])
        .await
        .expect("composed");
    product
        .validate(&configuration, PlatformMode::Metal)
        .await
        .expect("validated");
    let interface = text("machine:\n  network:\n    interfaces: [{interface: eth0}]\n");
    let panicking = text("machine:\n  network:\n    interfaces: [null]\n");
    let answer = product
        .compose(&configuration, &[interface, panicking])
        .await;
    assert_eq!(refusal(answer), RefusedClass::Panicked);
    assert!(
        product
            .parse(&text(&format!("a: \"{value}")))
            .await
            .is_err()
    );
    let seen = surfaces(since, &product.idle_workers());
    assert!(!seen.is_empty());
    assert_eq!(holding(&seen, &value), Vec::<PathBuf>::new());
    assert_eq!(
        product.stderr_bytes(),
        0,
        "the product's worker prints nothing"
    );
    product.stop().await;

    // Every way to end, with the value in the text of the panic.
    let value = format!("{value}.{}", std::process::id());
    let ending = started(faulty(2)).await;
    all_ends(&ending, &value).await;
    let seen = surfaces(since, &ending.idle_workers());
    assert_eq!(holding(&seen, &value), Vec::<PathBuf>::new());
    ending.stop().await;
    assert!(!find(&ending.printed(), &value), "a crash told the value");

    leaking_workers_are_found(since, &value).await;
}

/// The controls: each surface with the value in it is found by the same look.
async fn leaking_workers_are_found(since: SystemTime, value: &str) {
    let printing = started(faulty(1)).await;
    let base = text(&format!("# fault: print\n# {value}\n"));
    printing.compose(&base, &[]).await.expect("answered");
    printing.stop().await;
    assert!(
        find(&printing.printed(), value),
        "a worker that prints its request is not found"
    );

    let file = std::env::temp_dir().join(format!("bronzeward-leak-{}", std::process::id()));
    let mut leaking = Leaking::start(value, &file);
    let seen = holding(&surfaces(since, &[leaking.0.id()]), value);
    leaking.end();
    fs::remove_file(&file).expect("removed");
    let process = PathBuf::from(format!("/proc/{}", leaking.0.id()));
    for found in [file, process.join("cmdline"), process.join("environ")] {
        assert!(seen.contains(&found), "{} is not found", found.display());
    }
}

struct Leaking(Child);

impl Leaking {
    fn start(value: &str, file: &Path) -> Leaking {
        let mut child = Command::new(testworker())
            .arg("leak")
            .arg(value)
            .arg(file)
            .env("LEAKED", value)
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert_eq!(line, "leaked\n");
        Leaking(child)
    }

    fn end(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

#[tokio::test]
async fn what_a_worker_prints_is_counted_and_dropped() {
    let _alone = alone().await;
    let renderer = started(faulty(1)).await;
    renderer
        .compose(&fault("print"), &[])
        .await
        .expect("answered");
    renderer.stop().await;
    assert_eq!(renderer.stderr_bytes(), "# fault: print\n\n".len() as u64);
}
