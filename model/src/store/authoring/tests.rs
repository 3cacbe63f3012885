//! The families' statements, interleaved by hand: who waits, for whom, and what is then so.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use bronzeward_core::act::{ActEntry, Action};
use bronzeward_core::canonical::Digest;
use bronzeward_core::claim::{ClaimKind, StagingMode};
use bronzeward_core::envelope::Envelope;
use bronzeward_core::fence::{Fence, Generation, Owner};
use bronzeward_core::head::{Layer, Name};
use bronzeward_core::id::{
    ActId, ClusterId, DraftId, EpochId, FragmentRevisionId, Id, IngestionId, Kind, PrincipalId,
    RequestId, TokenId,
};
use bronzeward_core::idempotency::{Fingerprint, IdempotencyKey};
use bronzeward_core::inventory::TalosClusterId;
use bronzeward_core::principal::{Actor, PrincipalKind, Role, Roles};
use bronzeward_core::revision::{Etag, EtagToken, Revision};
use bronzeward_core::rules::Rule;
use bronzeward_core::sanitized::Sanitized;
use bronzeward_core::secret::Plaintext;
use bronzeward_core::time::{DbTime, Span};
use bronzeward_core::token::{Token, TokenDigest};
use bronzeward_engine::ports::store::{
    Authorship, ClaimSource, ClaimWrites, Condition, DraftReads, DraftWrites, Guard,
    IdempotencyRecord, InventoryWrites, LockMode, Locks, NewClaim, NewCluster, NewDraft,
    NewFragment, Page, PrincipalReads, PrincipalWrites, ReferenceRow, RequestReads, RequestWrites,
    SourceReads, SourceWrites, StoreError, TokenReads, TokenWrites, Written,
};
use bronzeward_engine::rows::SourceRevisionId;
use bronzeward_without::Without;

use super::found;
use crate::pg::session::Session;
use crate::sim::Sim;
use crate::store::testing::Run;

/// A founded database with a human, a cluster and a draft.
fn world(rules: Without) -> Run {
    let sim = Sim::new(1, rules, false);
    found(&mut sim.state(), id(1), [7; 32]).expect("an empty database is founded");
    let mut run = Run::on(sim);
    run.all(async |mut tx: Session| {
        tx.ensure_human(id(1), "https://issuer", "ada").await?;
        tx.insert_cluster(&cluster(), DbTime::from_micros(0))
            .await?;
        tx.insert_draft(&draft(), DbTime::from_micros(0)).await?;
        tx.send_commit().await
    })
    .expect("the seed's rows are inserted");
    run
}

impl Run {
    /// A transaction that has done something and is still open.
    fn open<F>(&mut self, work: impl FnOnce(Session) -> F) -> Session
    where
        F: Future<Output = Result<Session, StoreError>> + Send + 'static,
    {
        self.all(work).expect("it waits for nobody")
    }
}

fn id<K: Kind>(bits: u128) -> Id<K> {
    Id::from_bits(bits)
}

fn actor() -> Actor {
    Actor {
        principal: id(1),
        role: Role::Author,
        kind: PrincipalKind::Human,
    }
}

fn cluster() -> NewCluster {
    let talos = format!("{}=", "A".repeat(43));
    NewCluster {
        id: id(1),
        name: "one".into(),
        endpoint: "https://10.0.0.1:6443".into(),
        contract: "v1.13".into(),
        talos_cluster: TalosClusterId::parse(&talos).expect("an identifier"),
        by: actor(),
        epoch: id(1),
    }
}

fn draft() -> NewDraft {
    NewDraft {
        id: id(1),
        cluster: id(1),
        title: "first".into(),
        etag: Etag::new(Revision::FIRST, EtagToken::from_bits(1)),
        by: actor(),
        epoch: id(1),
    }
}

fn claim(number: u128) -> NewClaim {
    NewClaim {
        id: id(number),
        kind: ClaimKind::DraftUpdate,
        mode: StagingMode::Transient,
        source: ClaimSource::Document,
        review: None,
        cluster: id(1),
        draft: id(1),
        machine: None,
        drift: None,
        by: actor().into(),
        key: Some(key()),
        fence: Fence {
            owner: Owner::parse("one/1/1").expect("an owner"),
            generation: Generation::FIRST,
            epoch: id(1),
        },
        lease_until: DbTime::from_micros(10),
        expires_at: DbTime::from_micros(20),
        created_at: DbTime::from_micros(0),
    }
}

fn key() -> IdempotencyKey {
    IdempotencyKey::parse("0123456789abcdef").expect("a key")
}

fn token(number: u128, owner: u128) -> Token {
    Token {
        id: id(number),
        owner: id(owner),
        digest: TokenDigest::from_bytes([1; 32]),
        roles: Roles::from([Role::Author]),
        expires_at: DbTime::from_micros(0) + Span::seconds(60),
        epoch: id(1),
        revoked_at: None,
    }
}

fn act(number: u128) -> ActEntry {
    ActEntry {
        id: id(number),
        actor: actor(),
        action: Action::DRAFT_CREATED,
        subjects: Vec::new(),
        key: Some(key()),
        request: Some(id::<bronzeward_core::id::kind::Request>(1)),
        epoch: id(1),
    }
}

fn record(of: ActId) -> IdempotencyRecord {
    IdempotencyRecord {
        fingerprint: Fingerprint {
            digest: [0; 32],
            key: None,
        },
        method: "POST".into(),
        route: "/drafts".into(),
        epoch: id(1),
        request: RequestId::from_bits(1),
        act: of,
        status: 201,
        location: None,
        etag: None,
        body: "{}".into(),
        operation: None,
    }
}

const START: DbTime = DbTime::from_micros(0);

#[test]
fn a_founded_database_has_its_epoch_and_its_cursor_key() {
    let mut run = world(Without::nothing());
    let (row, key) = run.all(async |mut tx: Session| {
        let row = tx.installation().await;
        (row, tx.cursor_key().await)
    });
    let row = row.expect("the row is there");
    assert_eq!(row.epoch, EpochId::from_bits(1));
    assert!(!row.recovery_mode);
    assert_eq!(key, Ok([7; 32]));
}

#[test]
fn who_ensures_the_same_human_waits_for_the_first_and_then_inserts_nothing() {
    let mut run = world(Without::nothing());
    let ensure = async |mut tx: Session, number: u128| {
        tx.ensure_human(id(number), "https://issuer", "bob").await?;
        Ok(tx)
    };
    let first = run.open(move |tx| ensure(tx, 2));
    let second = run.begin(move |tx| ensure(tx, 3));
    run.settle();
    assert!(!second.done());
    run.commit(first).expect("it commits");
    run.settle();
    let second = second.take().expect("it goes on");
    run.commit(second).expect("it commits");
    let found = run.all(async |mut tx: Session| tx.human("https://issuer", "bob").await);
    assert_eq!(found.expect("it reads").expect("one stands").id, id(2));
}

#[test]
fn who_ensures_the_same_human_inserts_it_when_the_first_rolls_back() {
    let mut run = world(Without::nothing());
    let ensure = async |mut tx: Session, number: u128| {
        tx.ensure_human(id(number), "https://issuer", "bob").await?;
        Ok(tx)
    };
    let first = run.open(move |tx| ensure(tx, 2));
    let second = run.begin(move |tx| ensure(tx, 3));
    run.settle();
    run.rollback(first);
    run.settle();
    let second = second.take().expect("it goes on");
    run.commit(second).expect("it commits");
    let found = run.all(async |mut tx: Session| tx.human("https://issuer", "bob").await);
    assert_eq!(found.expect("it reads").expect("one stands").id, id(3));
}

fn two_tokens(rules: Without) -> Result<(), StoreError> {
    let mut run = world(rules);
    run.all(async |mut tx: Session| {
        tx.insert_service(id(5), "robot", id(1)).await?;
        tx.send_commit().await
    })
    .expect("an identity");
    let insert = async |mut tx: Session, number: u128| {
        tx.insert_token(&token(number, 5), START).await?;
        Ok(tx)
    };
    let first = run.open(move |tx| insert(tx, 1));
    let second = run.begin(move |tx| insert(tx, 2));
    run.settle();
    assert_eq!(second.done(), rules.drops(Rule::OneTokenPerIdentity));
    run.commit(first).expect("it commits");
    run.settle();
    let outcome: Result<Session, StoreError> = second.take();
    outcome.and_then(|tx| run.commit(tx))
}

#[test]
fn a_second_unrevoked_token_waits_and_is_refused_unless_its_index_is_dropped() {
    let refused = Err(StoreError::Unique("automation_token_unrevoked"));
    assert_eq!(two_tokens(Without::nothing()), refused);
    let dropped = Without::rules(&[Rule::OneTokenPerIdentity]);
    assert_eq!(two_tokens(dropped), Ok(()));
}

#[test]
fn a_revoked_token_makes_room_for_the_next() {
    let mut run = world(Without::nothing());
    let outcome = run.all(async |mut tx: Session| {
        tx.insert_service(id(5), "robot", id(1)).await?;
        tx.insert_token(&token(1, 5), START).await?;
        assert_eq!(tx.revoke_token(id(1), START).await?, Written::Written);
        assert_eq!(tx.revoke_token(id(1), START).await?, Written::Stale);
        tx.insert_token(&token(2, 5), START).await?;
        tx.tokens().await
    });
    let listed: Vec<TokenId> = outcome
        .expect("both")
        .iter()
        .map(|token| token.id)
        .collect();
    assert_eq!(listed, [id(1), id(2)]);
}

#[test]
fn a_token_of_a_human_role_fails_the_schemas_check_unless_it_is_dropped() {
    let insert = |rules: Without| {
        let mut run = world(rules);
        run.all(async |mut tx: Session| {
            tx.insert_service(id(5), "robot", id(1)).await?;
            let mut token = token(1, 5);
            token.roles.insert(Role::Approver);
            tx.insert_token(&token, START).await
        })
    };
    let refused = Err(StoreError::Integrity("automation_token_roles_check"));
    assert_eq!(insert(Without::nothing()), refused);
    let dropped = Without::rules(&[Rule::AutomationRolesCheck]);
    assert_eq!(insert(dropped), Ok(()));
}

async fn advance(tx: &mut Session, from: i64) -> Result<Written, StoreError> {
    let guard = Guard::new().and(Condition::Revision(from));
    tx.advance_draft(id(1), &guard, EtagToken::from_bits(9))
        .await
}

#[test]
fn the_second_of_two_compare_and_sets_waits_and_is_then_stale() {
    let mut run = world(Without::nothing());
    let first = run.open(async |mut tx: Session| {
        assert_eq!(advance(&mut tx, 1).await?, Written::Written);
        Ok(tx)
    });
    let second = run.begin(async |mut tx: Session| advance(&mut tx, 1).await);
    run.settle();
    assert!(!second.done());
    run.commit(first).expect("it commits");
    run.settle();
    assert_eq!(second.take(), Ok(Written::Stale));
}

#[test]
fn the_second_compare_and_set_is_written_when_the_first_rolls_back() {
    let mut run = world(Without::nothing());
    let first = run.open(async |mut tx: Session| {
        assert_eq!(advance(&mut tx, 1).await?, Written::Written);
        Ok(tx)
    });
    let second = run.begin(async |mut tx: Session| advance(&mut tx, 1).await);
    run.settle();
    run.rollback(first);
    run.settle();
    assert_eq!(second.take(), Ok(Written::Written));
}

#[test]
fn an_update_whose_guard_does_not_fit_waits_for_nobody() {
    let mut run = world(Without::nothing());
    let first = run.open(async |mut tx: Session| {
        assert_eq!(advance(&mut tx, 1).await?, Written::Written);
        Ok(tx)
    });
    // It would fit what the first has written and not committed.
    let second = run.all(async |mut tx: Session| advance(&mut tx, 2).await);
    assert_eq!(second, Ok(Written::Stale));
    run.commit(first).expect("it commits");
}

#[test]
fn a_foreign_key_waits_for_who_holds_its_row_for_update() {
    let mut run = world(Without::nothing());
    let holder = run.open(async |mut tx: Session| {
        tx.lock_draft(id(1), LockMode::Update).await?;
        Ok(tx)
    });
    let inserts = run.begin(async |mut tx: Session| tx.insert_claim(&claim(1)).await);
    run.settle();
    assert!(!inserts.done());
    run.rollback(holder);
    run.settle();
    assert_eq!(inserts.take(), Ok(()));
}

#[test]
fn a_foreign_key_waits_for_no_weaker_lock_and_refuses_a_row_that_is_not_there() {
    let mut run = world(Without::nothing());
    let holder = run.open(async |mut tx: Session| {
        tx.lock_draft(id(1), LockMode::NoKeyUpdate).await?;
        Ok(tx)
    });
    let inserted = run.all(async |mut tx: Session| tx.insert_claim(&claim(1)).await);
    assert_eq!(inserted, Ok(()));
    run.rollback(holder);
    let refused = run.all(async |mut tx: Session| {
        let absent = NewClaim {
            draft: DraftId::from_bits(2),
            ..claim(2)
        };
        tx.insert_claim(&absent).await
    });
    let name = "staging_claim_draft_id_fkey";
    assert_eq!(refused, Err(StoreError::Integrity(name)));
}

#[test]
fn a_live_claim_of_a_key_refuses_another_until_it_ends() {
    let mut run = world(Without::nothing());
    let outcome = run.all(async |mut tx: Session| {
        tx.insert_claim(&claim(1)).await?;
        tx.send_commit().await
    });
    assert_eq!(outcome, Ok(()));
    let again = async |mut tx: Session| tx.insert_claim(&claim(2)).await;
    let refused = Err(StoreError::Unique("staging_claim_live_key"));
    assert_eq!(run.all(again), refused);
    let after = run.all(async |mut tx: Session| {
        let end = bronzeward_engine::ports::store::ClaimEnd::Abandoned;
        let lapsed = Guard::new().and(Condition::LeaseLapsed);
        assert_eq!(tx.end_claim(id(1), &lapsed, end).await?, Written::Stale);
        assert_eq!(
            tx.end_claim(id(1), &Guard::new(), end).await?,
            Written::Written
        );
        tx.insert_claim(&claim(2)).await
    });
    assert_eq!(after, Ok(()));
}

#[test]
fn a_lock_of_rows_gives_them_as_they_are_after_the_wait() {
    let mut run = world(Without::nothing());
    let first = run.open(async |mut tx: Session| {
        assert_eq!(advance(&mut tx, 1).await?, Written::Written);
        Ok(tx)
    });
    let locks = run.begin(async |mut tx: Session| tx.lock_draft(id(1), LockMode::Share).await);
    let reads = run.all(async |mut tx: Session| tx.draft(id(1)).await);
    let seen = reads.expect("it reads").expect("it stands");
    assert_eq!(seen.etag.revision, Revision(1));
    assert!(!locks.done());
    run.commit(first).expect("it commits");
    run.settle();
    let row = locks.take().expect("it locks").expect("it stands");
    assert_eq!(row.etag.revision, Revision(2));
}

#[test]
fn who_shares_the_installation_does_not_pass_who_waits_for_it_alone() {
    let mut run = world(Without::nothing());
    let lock = async |mut tx: Session, mode: LockMode| {
        tx.lock_installation(Some(mode)).await?;
        Ok(tx)
    };
    let first = run.open(move |tx| lock(tx, LockMode::Share));
    let alone = run.begin(move |tx| lock(tx, LockMode::Update));
    run.settle();
    let later = run.begin(move |tx| lock(tx, LockMode::Share));
    run.settle();
    assert!(!alone.done() && !later.done());
    run.rollback(first);
    run.settle();
    assert!(alone.done() && !later.done());
    let alone: Result<Session, StoreError> = alone.take();
    run.rollback(alone.expect("it locks"));
    run.settle();
    let later: Result<Session, StoreError> = later.take();
    run.rollback(later.expect("it locks"));
}

#[test]
fn two_who_lock_crosswise_end_with_one_victim() {
    let mut run = world(Without::nothing());
    let principal = async |tx: &mut Session| {
        let one = BTreeMap::from([(PrincipalId::from_bits(1), Some(LockMode::Update))]);
        tx.lock_principals(&one).await
    };
    let first = run.open(async |mut tx: Session| {
        tx.lock_draft(id(1), LockMode::Update).await?;
        Ok(tx)
    });
    let second = run.open(async move |mut tx: Session| {
        principal(&mut tx).await?;
        Ok(tx)
    });
    let (mut one, mut other) = (first, second);
    let one = run.spawn(async move { principal(&mut one).await.map(drop) });
    let other = run.spawn(async move { other.lock_draft(id(1), LockMode::Update).await.map(drop) });
    run.settle();
    let outcomes = [one.take(), other.take()];
    let victims = outcomes.iter().filter(|o| **o == Err(StoreError::Deadlock));
    assert_eq!(victims.count(), 1);
    assert!(outcomes.contains(&Ok(())));
}

#[test]
fn acts_are_read_in_the_order_of_their_recording() {
    let mut run = world(Without::nothing());
    let rows = run.all(async |mut tx: Session| {
        for number in [3, 1, 2] {
            let at = tx.lock_acts(true).await?;
            tx.insert_act(&act(number), at).await?;
        }
        let first = tx
            .acts(&Page {
                after: None,
                limit: 2,
            })
            .await?;
        let after = first.items.last().map(|act| act.id);
        let rest = tx.acts(&Page { after, limit: 2 }).await?;
        assert!(first.more && !rest.more);
        let rows = first.items.into_iter().chain(rest.items);
        Ok::<_, StoreError>(rows.map(|act| act.id).collect::<Vec<_>>())
    });
    assert_eq!(rows, Ok(vec![id(3), id(1), id(2)]));
}

#[test]
fn a_record_whose_act_is_not_written_fails_the_commit() {
    let mut run = world(Without::nothing());
    let commit = |run: &mut Run, with_act: bool| {
        run.all(async move |mut tx: Session| {
            let of = record(id(1));
            tx.insert_idempotency_record(id(1), &key(), &of, START)
                .await?;
            if with_act {
                tx.insert_act(&act(1), START).await?;
            }
            tx.send_commit().await
        })
    };
    let name = "idempotency_record_act_id_fkey";
    assert_eq!(commit(&mut run, false), Err(StoreError::Integrity(name)));
    assert_eq!(commit(&mut run, true), Ok(()));
    let again = run.all(async |mut tx: Session| {
        assert_eq!(
            tx.idempotency_record(id(1), &key()).await?,
            Some(record(id(1)))
        );
        tx.insert_idempotency_record(id(1), &key(), &record(id(1)), START)
            .await
    });
    assert_eq!(again, Err(StoreError::Unique("idempotency_record_pkey")));
}

/// A sanitized text with one reference, and the row of it.
fn text() -> (Sanitized, ReferenceRow) {
    let generation = format!(
        "gen/{}/{}/{}",
        ClusterId::from_bits(1),
        IngestionId::from_bits(1),
        { bronzeward_core::generation::ValueId::from_bits(3) }
    );
    let json = format!(
        r#"{{"document": "a: 1", "embedded": [], "baseline": null, "references": {{"one": {{
            "kind": "string", "version": 1, "generation": "{generation}",
            "keyedDigest": "{digest}", "digestKey": "digest", "digestKeyVersion": 1}}}}}}"#,
        digest = "00".repeat(32),
    );
    let stored = Digest::of(json.as_bytes());
    let envelope = Envelope::open(&Plaintext::new(json), stored).expect("an envelope");
    let (name, kept) = envelope.generations.into_iter().next().expect("one");
    let declaration = envelope.sanitized.declarations().references[&name];
    let row = ReferenceRow {
        name,
        declaration,
        kept,
    };
    (envelope.sanitized, row)
}

fn fragment() -> NewFragment {
    NewFragment {
        id: id(1),
        name: Name::parse("base").expect("a name"),
        layer: Layer::Global,
        claim: id(1),
        written: Authorship {
            cluster: id(1),
            draft: id(1),
            by: actor().into(),
            epoch: id(1),
            at: START,
        },
    }
}

#[test]
fn references_complete_their_revision_and_come_from_its_own_transaction_only() {
    let mut run = world(Without::nothing());
    let revision = SourceRevisionId::Fragment(id(1));
    let inserted = run.all(async move |mut tx: Session| {
        let (text, row) = text();
        tx.insert_claim(&claim(1)).await?;
        tx.insert_fragment(&fragment(), &text).await?;
        tx.insert_references(revision, id(1), &[row]).await?;
        tx.send_commit().await
    });
    assert_eq!(inserted, Ok(()));
    let (rows, named) = run.all(async |mut tx: Session| {
        let ids = BTreeSet::from([FragmentRevisionId::from_bits(1)]);
        let names = BTreeSet::from([text().1.name]);
        let rows = tx.fragment_revisions(&ids).await;
        (rows, tx.references_named(id(1), &names).await)
    });
    let rows = rows.expect("it reads");
    assert!(rows[0].declarations == *text().0.declarations());
    assert_eq!(named, Ok(vec![text().1]));
    let late = run.all(async move |mut tx: Session| {
        let rows = [text().1];
        tx.insert_references(revision, id(1), &rows).await
    });
    let name = "reference_row_same_writer";
    assert_eq!(late, Err(StoreError::Integrity(name)));
}
