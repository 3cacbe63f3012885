//! The families' statements, interleaved by hand: who waits, for whom, and what is then so.

use bronzeward_core::attempt::{Attempt, Response, ResponseClass};
use bronzeward_core::canonical::Digest;
use bronzeward_core::dependency::{Class, Classification};
use bronzeward_core::fence::{Fence, Generation, Owner};
use bronzeward_core::id::{Id, Kind};
use bronzeward_core::inventory::{Endpoint, IdentityKey, Platform, SmbiosUuid, TalosClusterId};
use bronzeward_core::observation::AccessVersion;
use bronzeward_core::principal::{Role, Signed};
use bronzeward_core::problem::Member;
use bronzeward_core::release::{BoundDraft, Contract, RendererRecord};
use bronzeward_core::revision::{Etag, EtagToken, Revision, TimelineRevision};
use bronzeward_core::rules::Rule;
use bronzeward_core::scope::ScopeState;
use bronzeward_core::time::DbTime;
use bronzeward_engine::ports::store::{
    ClusterRow, Condition, Dependency, Guard, JobReads, JobWrites, NewEntry, NewJob, NewRelease,
    NewWork, OperationWrites, Page, PrincipalWrites, ReleaseReads, ReleaseWrites, Seed, StoreError,
    TimelineReads, TimelineWrites, Written,
};
use bronzeward_engine::rows::{DraftRow, DraftStateRow, MachineRow, MachineStateRow};
use bronzeward_without::Without;

use crate::pg::session::Session;
use crate::sched::ProcessId;
use crate::sim::Sim;
use crate::store::testing::Run;

/// A database with one human, one cluster, one machine and one draft.
fn world(rules: Without) -> Run {
    let sim = Sim::new(1, rules, false);
    {
        let mut state = sim.state();
        let tx = state.db.begin(ProcessId::WORLD, START);
        let row = cluster();
        state.db.put(tx, |t| &mut t.authoring.clusters, row.id, row);
        let row = machine();
        state.db.put(tx, |t| &mut t.authoring.machines, row.id, row);
        let row = draft();
        state.db.put(tx, |t| &mut t.authoring.drafts, row.id, row);
        state.commit(tx).expect("it commits");
    }
    let mut run = Run::on(sim);
    run.all(async |mut tx: Session| {
        tx.ensure_human(id(1), "https://issuer", "ada").await?;
        tx.send_commit().await
    })
    .expect("a human is recorded");
    run
}

const START: DbTime = DbTime::from_micros(0);
const LATER: DbTime = DbTime::from_micros(1_000_000);

fn id<K: Kind>(bits: u128) -> Id<K> {
    Id::from_bits(bits)
}

fn talos_cluster() -> TalosClusterId {
    let text = format!("{}=", "A".repeat(43));
    TalosClusterId::parse(&text).expect("an identifier")
}

fn cluster() -> ClusterRow {
    ClusterRow {
        id: id(1),
        name: "one".to_owned(),
        endpoint: "https://one".to_owned(),
        contract: "v1.13".to_owned(),
        talos_cluster: talos_cluster(),
        created_by: id(1),
        created_at: START,
    }
}

fn machine() -> MachineRow {
    let uuid = "00000000-0000-0000-0000-000000000001";
    MachineRow {
        id: id(1),
        cluster: id(1),
        talos_cluster: talos_cluster(),
        key: IdentityKey::SmbiosUuid(SmbiosUuid::parse(uuid).expect("a UUID")),
        serial: None,
        platform: Platform::Metal,
        endpoint: Endpoint::parse("10.0.0.1:50000").expect("an endpoint"),
        frozen: false,
        scope: ScopeState::Normal,
        timeline: TimelineRevision(0),
        created_at: START,
        state: MachineStateRow::default(),
    }
}

fn draft() -> DraftRow {
    DraftRow {
        id: id(1),
        cluster: id(1),
        title: "a draft".to_owned(),
        state: DraftStateRow::Open,
        etag: Etag::new(Revision::FIRST, EtagToken::from_bits(1)),
        created_by: signed(),
        created_at: START,
    }
}

fn signed() -> Signed {
    Signed {
        principal: id(1),
        role: Role::Publisher,
    }
}

fn fence(generation: i64) -> Fence {
    Fence {
        owner: Owner::parse("one/1/1").expect("an owner"),
        generation: Generation(generation),
        epoch: id(1),
    }
}

fn job(number: u128) -> NewJob {
    NewJob {
        id: id(number),
        cluster: id(1),
        bound: BoundDraft {
            draft: id(1),
            revision: Revision::FIRST,
        },
        work: NewWork::Publish,
        by: signed(),
        epoch: id(1),
    }
}

fn entry(kind: &'static str, operation: Option<u128>) -> NewEntry {
    NewEntry {
        kind,
        operation: operation.map(id),
        plan: None,
        actor: Some(signed()),
        controller: None,
        epoch: id(1),
        act: None,
        at: START,
        data: Member::object([]),
    }
}

fn queued() -> Guard {
    Guard::new().and(Condition::StateIn(vec!["queued"]))
}

fn page<K>() -> Page<K> {
    Page {
        after: None,
        limit: 10,
    }
}

async fn owning(mut tx: Session, guard: Guard) -> Result<(Session, Written), StoreError> {
    let own = tx.own_job(id(1), &guard, &fence(1), LATER).await?;
    Ok((tx, own))
}

async fn inserting(mut tx: Session, number: u128) -> Result<Session, StoreError> {
    tx.insert_job(&job(number), START).await?;
    Ok(tx)
}

/// A database with a queued job, and one transaction that has claimed it and is open.
fn claimed() -> (Run, Session) {
    let mut run = world(Without::nothing());
    let tx = run.all(|tx| inserting(tx, 1)).expect("it inserts");
    run.commit(tx).expect("it commits");
    let (tx, own) = run.all(|tx| owning(tx, queued())).expect("it writes");
    assert_eq!(own, Written::Written);
    (run, tx)
}

#[test]
fn a_claim_waits_for_another_and_finds_its_guard_gone() {
    let (mut run, first) = claimed();
    let second = run.begin(|tx| owning(tx, queued()));
    run.settle();
    assert!(!second.done());
    run.commit(first).expect("it commits");
    let (_, own) = second.take().expect("it goes on");
    assert_eq!(own, Written::Stale);
}

#[test]
fn a_claim_that_waited_for_one_rolled_back_is_made() {
    let (mut run, first) = claimed();
    let second = run.begin(|tx| owning(tx, queued()));
    run.settle();
    run.rollback(first);
    let (_, own) = second.take().expect("it goes on");
    assert_eq!(own, Written::Written);
}

#[test]
fn a_guard_that_does_not_hold_when_the_statement_begins_waits_for_nobody() {
    let (mut run, _first) = claimed();
    let failed = Guard::new().and(Condition::StateIn(vec!["failed"]));
    let (_, own) = run
        .all(|tx| owning(tx, failed))
        .expect("it waits for nobody");
    assert_eq!(own, Written::Stale);
}

#[test]
fn a_claimed_job_is_no_candidate_before_its_lease_ends() {
    let (mut run, first) = claimed();
    run.commit(first).expect("it commits");
    let candidate = async |mut tx: Session| tx.publish_candidate().await;
    assert_eq!(run.all(candidate), Ok(None));
    run.sim.state().sched.advance(LATER - START);
    assert_eq!(run.all(candidate), Ok(Some(id(1))));
}

fn two_publications(rules: Without, first_commits: bool) -> Result<(), StoreError> {
    let mut run = world(rules);
    let first = run.all(|tx| inserting(tx, 1)).expect("it inserts");
    let second = run.begin(|tx| inserting(tx, 2));
    run.settle();
    match first_commits {
        true => run.commit(first)?,
        false => run.rollback(first),
    }
    let second = second.take()?;
    run.commit(second)
}

#[test]
fn a_second_active_publication_waits_for_the_first_and_is_refused_where_it_commits() {
    let refused = Err(StoreError::Unique("operation_active_publish"));
    assert_eq!(two_publications(Without::nothing(), true), refused);
    assert_eq!(two_publications(Without::nothing(), false), Ok(()));
}

#[test]
fn without_its_index_a_second_active_publication_stands() {
    let rules = Without::rule(Rule::OneActivePublication);
    assert_eq!(two_publications(rules, true), Ok(()));
}

#[test]
fn entries_are_numbered_in_the_order_of_their_commits_and_read_by_operation() {
    let mut run = world(Without::nothing());
    let tx = run.all(|tx| inserting(tx, 1)).expect("it inserts");
    run.commit(tx).expect("it commits");
    let append = async |mut tx: Session, kind| {
        let revision = tx.append_entry(id(1), &entry(kind, Some(1))).await?;
        Ok::<_, StoreError>((tx, revision))
    };
    let (first, revision) = run.all(|tx| append(tx, "commitment")).expect("it appends");
    assert_eq!(revision, TimelineRevision(1));
    let second = run.begin(|tx| append(tx, "attempt"));
    run.settle();
    assert!(!second.done());
    run.commit(first).expect("it commits");
    let (second, revision) = second.take().expect("it goes on");
    assert_eq!(revision, TimelineRevision(2));
    run.commit(second).expect("it commits");
    let events = run.all(async |mut tx: Session| {
        tx.append_event(id(1), &entry("queued", None)).await?;
        tx.operation_events(id(1), &page()).await
    });
    let kinds: Vec<String> = events
        .expect("it reads")
        .items
        .into_iter()
        .map(|entry| entry.kind)
        .collect();
    // The event and the first entry are both number 1: each counts for itself.
    assert_eq!(kinds, ["queued", "commitment", "attempt"]);
}

#[test]
fn an_entry_rolled_back_leaves_no_gap() {
    let mut run = world(Without::nothing());
    let append = async |mut tx: Session| {
        let revision = tx.append_entry(id(1), &entry("freeze", None)).await?;
        Ok::<_, StoreError>((tx, revision))
    };
    let (first, _) = run.all(append).expect("it appends");
    run.rollback(first);
    let (_, revision) = run.all(append).expect("it appends");
    assert_eq!(revision, TimelineRevision(1));
}

fn attempt() -> Attempt {
    Attempt {
        id: id(1),
        operation: id(1),
        machine: id(1),
        number: 1,
        fence: fence(1),
        route: machine().endpoint,
        evidence: id(1),
        access: AccessVersion {
            path: "talos".into(),
            version: 1,
            created: "then".into(),
        },
        revision: TimelineRevision(2),
        at: START,
        transport_deadline: LATER,
        verification_deadline: LATER,
        response: None,
        accounting: None,
    }
}

fn two_responses(rules: Without) -> Result<(), StoreError> {
    let mut run = world(rules);
    {
        let mut state = run.sim.state();
        let tx = state.db.begin(ProcessId::WORLD, START);
        let row = super::AttemptRow {
            attempt: attempt(),
            check: TimelineRevision(1),
        };
        state
            .db
            .put(tx, |t| &mut t.execution.attempts, row.attempt.id, row);
        state.commit(tx)?;
    }
    let answer = async |mut tx: Session| {
        let response = Response {
            class: ResponseClass::Accepted,
            code: "OK",
            revision: TimelineRevision(3),
            at: START,
        };
        tx.insert_response(&attempt(), &response, &fence(1)).await?;
        Ok::<_, StoreError>(tx)
    };
    let first = run.all(answer)?;
    let second = run.begin(answer);
    run.settle();
    run.commit(first)?;
    let second = second.take()?;
    run.commit(second)
}

#[test]
fn a_second_answer_to_an_attempt_is_refused_and_stands_without_its_key() {
    let refused = Err(StoreError::Unique("response_attempt_key"));
    assert_eq!(two_responses(Without::nothing()), refused);
    let rules = Without::rule(Rule::OneResponsePerAttempt);
    assert_eq!(two_responses(rules), Ok(()));
}

fn seed(number: u128) -> Seed {
    Seed {
        id: id(number),
        kv: true,
        dependency: Dependency {
            object: "gen/one".into(),
            version: 1,
            created: format!("then {number}"),
        },
        classification: Classification {
            class: Class::Retained,
            reason: None,
            scheduled: None,
        },
        classified_from: START,
    }
}

#[test]
fn who_seeds_a_version_that_another_seeds_waits_and_leaves_its_row() {
    let mut run = world(Without::nothing());
    let seeding = async |mut tx: Session, number| {
        tx.seed_statuses(&[seed(number)], START).await?;
        Ok::<_, StoreError>(tx)
    };
    let first = run.all(|tx| seeding(tx, 1)).expect("it seeds");
    // Another creation time of the same number of a path is the same to the index.
    let second = run.begin(|tx| seeding(tx, 2));
    run.settle();
    assert!(!second.done());
    run.commit(first).expect("it commits");
    let second = second.take().expect("it goes on");
    run.commit(second).expect("it commits");
    let objects = ["gen/one".to_owned()].into();
    let rows = run.all(async move |mut tx: Session| tx.statuses(&objects).await);
    let rows = rows.expect("it reads");
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [id(1)]);
}

#[test]
fn a_release_that_covers_no_machine_is_refused_at_its_commit() {
    let mut run = world(Without::nothing());
    let tx = run.all(|tx| inserting(tx, 1)).expect("it inserts");
    run.commit(tx).expect("it commits");
    let new = NewRelease {
        id: id(1),
        cluster: id(1),
        bound: job(1).bound,
        operation: id(1),
        digest: Digest([0; 32]),
        renderer: RendererRecord {
            contract: Contract {
                major: 1,
                minor: 13,
            },
            machinery_version: "v1.13.0".into(),
            machinery_checksum: "h1:x".into(),
            kubernetes_version: "v1.36.0".into(),
        },
        by: signed(),
        epoch: id(1),
        sources: Vec::new(),
        machines: Vec::new(),
    };
    let inserted = run.all(async move |mut tx: Session| {
        tx.insert_release(&new, START).await?;
        Ok::<_, StoreError>(tx)
    });
    let outcome = run.commit(inserted.expect("it inserts"));
    assert_eq!(outcome, Err(StoreError::Integrity("release_complete")));
    let found = run.all(async |mut tx: Session| tx.release(id(1)).await);
    assert_eq!(found, Ok(None));
}
