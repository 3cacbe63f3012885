use std::sync::Arc;

use bronzeward_core::dependency::{
    Class, KvVersion, Reason, TransitVersion, classify_kv, classify_transit, kv_created,
    proven_created,
};
use bronzeward_core::generation::{GenerationPath, ValueId};
use bronzeward_core::id::{ClusterId, IngestionId};
use bronzeward_core::secret::{Plaintext, Scalar, Value};
use bronzeward_core::time::Span;
use bronzeward_engine::ports::provider::{
    CompilerSecrets, Creation, DependencyMetadata, ExecutorSecrets, Failure, GenerationDirectory,
    IngestionSecrets, Listed, OrphanListing,
};

use super::super::testing::{PROCESS, now, run, sim};
use super::*;
use crate::faults::Faults;

fn path(value: u128) -> GenerationPath {
    GenerationPath {
        cluster: ClusterId::from_bits(1),
        claim: IngestionId::from_bits(2),
        value: ValueId::from_bits(value),
    }
}

fn value(text: &str) -> Value {
    Value::Scalar(Scalar::string(text))
}

fn created(sim: &Arc<Sim>, at: GenerationPath) -> Creation {
    let ingestion = SimIngestion::new(sim, PROCESS);
    run(sim, async move {
        ingestion.create_generation(&at, &value("kept")).await
    })
}

fn read(sim: &Arc<Sim>, at: GenerationPath) -> Result<String, Failure> {
    let compiler = SimCompiler::new(sim, PROCESS);
    let read = run(sim, async move { compiler.read_generation(&at, 1).await });
    read.map(|read| read.created)
}

fn class(sim: &Arc<Sim>, at: GenerationPath, recorded: Option<&str>) -> (Class, Option<Reason>) {
    let metadata = SimMetadata::new(sim, PROCESS);
    let answer = run(
        sim,
        async move { metadata.kv_metadata(&at.to_string()).await },
    );
    let asked = KvVersion {
        path: at.to_string(),
        version: 1,
        created: recorded.map(str::to_owned),
    };
    let classified = classify_kv(&asked, &answer);
    (classified.class, classified.reason)
}

#[test]
fn a_generation_is_created_once_and_its_fates_are_classified_as_the_provider_shows_them() {
    let sim = sim(1, Faults::none());
    let Creation::Created { created: at } = created(&sim, path(1)) else {
        panic!("not created");
    };
    assert_eq!(created(&sim, path(1)), Creation::MayExist);
    assert_eq!(read(&sim, path(1)).as_ref(), Ok(&at));
    assert_eq!(class(&sim, path(1), Some(&at)), (Class::Retained, None));
    assert_eq!(
        class(&sim, path(9), None),
        (Class::Unknown, Some(Reason::Absent))
    );

    let kv = KvPath::Generation(path(1));
    let later = now(&sim) + Span::seconds(50);
    sim.state().outside.vault.set_deletion(kv, 1, Some(later));
    let scheduled = (Class::Retained, Some(Reason::DeletionScheduled));
    assert_eq!(class(&sim, path(1), Some(&at)), scheduled);
    assert!(read(&sim, path(1)).is_ok());
    sim.state().sched.advance(Span::seconds(51));
    let deleted = (Class::Blocked, Some(Reason::SoftDeleted));
    assert_eq!(class(&sim, path(1), Some(&at)), deleted);
    assert_eq!(read(&sim, path(1)), Err(Failure::Absent));

    sim.state().outside.vault.set_deletion(kv, 1, None);
    assert_eq!(class(&sim, path(1), Some(&at)), (Class::Retained, None));
    sim.state().outside.vault.delete_metadata(kv);
    let again = Data::Generation(value("other"));
    let again = {
        let at = now(&sim);
        sim.state().outside.vault.write(kv, again, at)
    };
    assert_ne!(again, at);
    let rewritten = (Class::Unknown, Some(Reason::IdentityMismatch));
    assert_eq!(class(&sim, path(1), Some(&at)), rewritten);
    sim.state().outside.vault.destroy(kv, 1);
    assert_eq!(class(&sim, path(1), Some(&at)).0, Class::Lost);
}

#[test]
fn a_ciphertext_opens_under_its_own_key_and_under_no_key_made_again() {
    let sim = sim(1, Faults::none());
    let (compiler, executor) = (
        SimCompiler::new(&sim, PROCESS),
        SimExecutor::new(&sim, PROCESS),
    );
    let text = Plaintext::new("configuration".to_owned());
    let sealed = run(&sim, async move { compiler.encrypt_artifact(&text).await });
    let sealed = sealed.expect("encrypted");
    assert!(!sealed.as_str().contains("configuration"));
    let executor = Arc::new(executor);
    let open = |bound| {
        let (executor, sealed) = (Arc::clone(&executor), sealed.clone());
        run(&sim, async move {
            let opened = executor.decrypt_artifact(&sealed, bound).await;
            opened.map(|text| text.expose().to_owned())
        })
    };
    assert_eq!(open(1).as_deref(), Ok("configuration"));
    assert_eq!(open(2), Err(Failure::Integrity));
    let backup = sim.state().outside.vault.snapshot();
    let at = now(&sim);
    sim.state().outside.vault.rotate(Key::Artifact, at);
    assert!(open(1).is_ok());
    sim.state()
        .outside
        .vault
        .set_decryption_floor(Key::Artifact, 2);
    assert_eq!(open(1), Err(Failure::Refused));
    sim.state().outside.vault.delete_key(Key::Artifact);
    sim.state().outside.vault.make_key(Key::Artifact, at);
    assert_eq!(open(1), Err(Failure::Refused));
    sim.state().outside.vault.restore(backup);
    assert!(open(1).is_ok());
}

#[test]
fn a_keys_creation_is_proven_by_two_readings_and_not_in_its_own_second() {
    let sim = sim(1, Faults::none());
    let prove = |version| {
        let metadata = SimMetadata::new(&sim, PROCESS);
        run(&sim, async move {
            let before = metadata.transit_key(Key::Artifact.name()).await;
            let after = metadata.transit_key(Key::Artifact.name()).await;
            proven_created(version, &before, &after)
        })
    };
    assert!(prove(1).is_some());
    let at = now(&sim);
    sim.state().outside.vault.rotate(Key::Artifact, at);
    assert_eq!(prove(2), None);
    sim.state().sched.advance(Span::seconds(1));
    assert_eq!(prove(2), Some(at.as_seconds()));
    sim.state().outside.vault.trim(Key::Artifact, 2);
    let metadata = SimMetadata::new(&sim, PROCESS);
    let answer = run(&sim, async move {
        metadata.transit_key(Key::Artifact.name()).await
    });
    let asked = TransitVersion {
        key: Key::Artifact.name().to_owned(),
        version: 1,
        created: Some(1),
    };
    let trimmed = classify_transit(&asked, &answer).reason;
    assert_eq!(trimmed, Some(Reason::TrimmedUnverified));
}

#[test]
fn digests_differ_by_text_and_by_key_version_and_are_recomputed_alike() {
    let sim = sim(1, Faults::none());
    let ingestion = Arc::new(SimIngestion::new(&sim, PROCESS));
    let digests = || {
        let ingestion = Arc::clone(&ingestion);
        run(&sim, async move {
            let inputs = ["a", "b", "a"].map(|text| Plaintext::new(text.to_owned()));
            ingestion.keyed_digests(&inputs).await.expect("digested")
        })
    };
    let first = digests();
    assert!(first[0] == first[2] && first[0].mac != first[1].mac);
    let at = now(&sim);
    sim.state().outside.vault.rotate(Key::Digest, at);
    let second = digests();
    assert!(second[0].mac != first[0].mac && second[0].key.version == 2);
    let (key, again) = (first[0].key.clone(), Arc::clone(&ingestion));
    let again = run(&sim, async move {
        let input = Plaintext::new("a".to_owned());
        again.recompute_digest(&key, &input).await
    });
    assert_eq!(again.as_ref(), Ok(&first[0]));
}

#[test]
fn a_seal_a_denial_and_an_absent_access_are_told_apart() {
    let sim = sim(1, Faults::none());
    let cluster = ClusterId::from_bits(1);
    let access = || {
        let executor = SimExecutor::new(&sim, PROCESS);
        let read = run(
            &sim,
            async move { executor.read_talos_access(cluster).await },
        );
        read.map(|access| access.version.version)
    };
    assert_eq!(access(), Err(Failure::Absent));
    let at = now(&sim);
    for number in 1..=2 {
        let data = Data::Talosconfig(talosconfig(cluster, number));
        sim.state()
            .outside
            .vault
            .write(KvPath::Access(cluster), data, at);
    }
    assert_eq!(access(), Ok(2));
    let until = at + Span::seconds(9);
    sim.state().outside.vault.deny(Identity::Executor, until);
    assert_eq!(access(), Err(Failure::Denied));
    assert!(matches!(created(&sim, path(1)), Creation::Created { .. }));
    sim.state().outside.vault.deny(Identity::Ingestion, until);
    assert_eq!(created(&sim, path(2)), Creation::MayExist);
    sim.state().outside.vault.seal(until);
    let unknown = Creation::Unknown(Failure::Unavailable);
    assert_eq!(created(&sim, path(2)), unknown);
    assert_eq!(class(&sim, path(1), None).1, Some(Reason::Unavailable));
    sim.state().sched.advance(Span::seconds(10));
    assert_eq!(access(), Ok(2));
}

#[test]
fn a_lost_creation_is_unknown_and_was_done_in_some_seeds_and_not_in_others() {
    let mut done = [0, 0];
    for seed in 0..60 {
        let sim = sim(seed, Faults::none().with(Fault::ProviderLost, 10_000));
        assert!(matches!(created(&sim, path(1)), Creation::Unknown(_)));
        let held = sim.state().outside.vault.holds(path(1), 1).is_some();
        done[usize::from(held)] += 1;
        let unheard = sim.state().outside.seen.unheard_calls;
        assert_eq!(unheard, u64::from(held));
    }
    assert!(done[0] > 10 && done[1] > 10, "{done:?}");
}

#[test]
fn a_restore_takes_later_generations_away_and_the_listing_names_what_is_there() {
    let sim = sim(1, Faults::none());
    let list = |directory| {
        let orphans = SimOrphans::new(&sim, PROCESS);
        run(&sim, async move {
            orphans.list(directory).await.expect("listed")
        })
    };
    assert!(list(GenerationDirectory::Clusters).is_empty());
    assert!(matches!(created(&sim, path(1)), Creation::Created { .. }));
    let backup = sim.state().outside.vault.snapshot();
    assert!(matches!(created(&sim, path(2)), Creation::Created { .. }));
    let claims = list(GenerationDirectory::Claims(path(1).cluster));
    assert_eq!(claims, [Listed::Directory(path(1).claim.to_string())]);
    let values = GenerationDirectory::Values(path(1).cluster, path(1).claim);
    assert_eq!(list(values).len(), 2);
    sim.state().outside.vault.restore(backup);
    assert_eq!(list(values), [Listed::Secret(path(1).value.to_string())]);
}

#[test]
fn what_somebody_spoils_is_noticed_by_a_look_at_it() {
    let mut spoiled = 0;
    for seed in 0..80 {
        let sim = sim(seed, Faults::none());
        let Creation::Created { created: at } = created(&sim, path(1)) else {
            panic!("not created");
        };
        sim.state().sched.advance(Span::seconds(2));
        spoil(&mut sim.state());
        sim.state().sched.advance(Span::seconds(2));
        spoiled += usize::from(class(&sim, path(1), Some(&at)) != (Class::Retained, None));
        let metadata = SimMetadata::new(&sim, PROCESS);
        let answer = run(&sim, async move {
            metadata.kv_metadata(&path(1).to_string()).await
        });
        let given = kv_created(1, &answer);
        assert!(given.is_none_or(|given| !given.is_empty()));
    }
    assert!(spoiled > 20, "{spoiled}");
}
