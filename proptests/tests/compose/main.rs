//! The case matrix of `fixtures/compose` through the real renderer.
//!
//! `COMPOSE_CASES` names another folder of cases of the same form. The renderer worker
//! and the generator are programs that `./dev setup` builds. See fixtures/compose/README.md.

mod bench;
mod case;
mod cell;
mod controls;
mod native;
mod oracle;
mod scene;
mod variant;

use std::path::PathBuf;

use bench::Bench;
use case::Case;

async fn cases(bench: &Bench) -> Vec<Case> {
    let folder = match std::env::var_os("COMPOSE_CASES") {
        Some(folder) => PathBuf::from(folder),
        None => bronzeward_harness::tool::checkout().join("fixtures/compose"),
    };
    let listed =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = listed
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    assert!(
        !files.is_empty(),
        "no case (*.yaml) in {}",
        folder.display()
    );
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a case file");
        let mut stream = bench.parse(&text).await;
        let root = stream.documents.pop().expect("a case is one document");
        let case = Case::read(root).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        cases.push(case);
    }
    cases
}

// covers: IC-CMP-1 IC-CMP-2 IC-CMP-4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_ends_as_it_says_on_both_bases_and_with_its_references_in_either_place() {
    let bench = Bench::start().await;
    let cases = cases(&bench).await;
    let bases = bench.bases().await;
    let mut failures = Vec::new();
    for case in &cases {
        for base in &bases {
            let (main, found) = cell::main_cell(&bench, case, base).await;
            failures.extend(found);
            failures.extend(variant::base_ref_cell(&bench, case, base, main.as_ref()).await);
        }
    }
    bench.renderer.stop().await;
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    eprintln!("{} cases, {} bases", cases.len(), bases.len());
}

// covers: IC-RED-1
// covers-part: IC-RED-2 (the machinery's own messages; a message that nothing explains)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_matrix_relies_on_can_fail() {
    let bench = Bench::start().await;
    let cases = cases(&bench).await;
    let bases = bench.bases().await;
    let mut fired = controls::Fired::default();
    for base in &bases {
        controls::schema(&bench, base, &mut fired).await;
        for case in &cases {
            controls::base_is_clean(case, base, &mut fired);
            controls::second_revision(&bench, case, base, &mut fired).await;
            let Some(ready) = controls::ready(&bench, case, base).await else {
                continue;
            };
            assert!(
                controls::scene_reads(&bench, case, base).await,
                "{}",
                case.id
            );
            controls::fidelity(&bench, case, base, &ready, &mut fired).await;
            controls::messages(&bench, case, base, &ready, &mut fired).await;
            controls::trace_and_twice(&bench, case, base, &ready, &mut fired).await;
            controls::one_sided(&bench, case, base, &ready, &mut fired).await;
            controls::means(&bench, case, base, &ready, &mut fired).await;
        }
    }
    bench.renderer.stop().await;
    let always = [
        "schema means dropped",
        "base holds no value",
        "fidelity",
        "trace holds no value",
        "twice the same",
        "path and value means dropped",
    ];
    fired.assert(&always);
    // A folder of other cases need not hold one of each kind.
    if std::env::var_os("COMPOSE_CASES").is_none() {
        fired.assert(&[
            "compose message",
            "validate message",
            "one side of a diff",
            "moved: last paths",
            "rotate: last values",
            "rotate: last version",
        ]);
    }
}
