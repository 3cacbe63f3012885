//! Guards as the WHERE of real statements.

use bronzeward_core::fence::{Generation, Owner};
use bronzeward_core::id::EpochId;
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_engine::ports::store::{Condition, Guard, StoreError, Written};
use diesel::prelude::*;

use super::support::{self, epoch, id};
use crate::guard::{predicate, written};
use crate::schema::{draft, operation};
use crate::session::Pool;
use crate::tx::Mode;

async fn advance(pool: &Pool, guard: &Guard) -> Result<Written, StoreError> {
    let mut tx = pool.begin(Mode::Write).await?;
    let update = diesel::update(draft::table)
        .filter(draft::id.eq(id("drf", 0)))
        .filter(predicate::<draft::table>(guard)?)
        .set(draft::revision.eq(draft::revision + 1));
    let rows = tx.execute(update).await?;
    tx.commit().await?;
    written(rows)
}

/// Every rule but one.
#[derive(Clone, Copy)]
struct Dropped(Rule);

impl Rules for Dropped {
    fn holds(&self, rule: Rule, condition: bool) -> bool {
        rule == self.0 || condition
    }
}

/// 20 rounds of 8 writers that hold the same read: how many were accepted and refused.
async fn rounds(guard_at: impl Fn(i64) -> Guard) -> (usize, usize) {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let pool = support::pool(&database, 8);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..20 {
        let revision = support::count(&client, "SELECT revision FROM draft").await;
        let guard = guard_at(revision);
        let writers = (0..8).map(|_| advance(&pool, &guard));
        for outcome in futures::future::join_all(writers).await {
            match outcome.expect("the statement runs") {
                Written::Written => accepted += 1,
                Written::Stale => refused += 1,
            }
        }
    }
    (accepted, refused)
}

// covers: PA-REV-1
#[tokio::test]
async fn of_eight_writers_on_one_revision_one_is_accepted() {
    let by = |revision| Condition::Revision(revision);
    let rule = Rule::RevisionUnchanged;
    let guard = |revision| Guard::new().when(&Enforced, rule, by(revision));
    assert_eq!(rounds(guard).await, (20, 140));
    // Control: the predicate dropped, every writer is accepted over the others.
    let dropped = |revision| Guard::new().when(&Dropped(rule), rule, by(revision));
    assert_eq!(rounds(dropped).await, (160, 0));
}

#[tokio::test]
async fn each_condition_holds_for_its_own_rows_only() {
    let database = support::migrated().await;
    let client = support::session(&database).await;
    support::inventory(&client).await;
    let queued = id("op", 0);
    let running = id("op", 1);
    let epoch = epoch();
    let columns = "id, kind, state, cluster_id, draft_id, draft_revision, created_by, \
                   created_role, epoch, created_at, owner, owner_gen, owner_epoch, lease_until";
    let shared = |revision| {
        format!(
            "'{}', '{}', {revision}, '{}', 'author', '{epoch}', now()",
            id("cl", 0),
            id("drf", 0),
            id("idn", 0)
        )
    };
    support::run(
        &client,
        &format!(
            "INSERT INTO operation ({columns})
         VALUES ('{queued}', 'publish', 'queued', {}, NULL, 0, NULL, NULL),
                ('{running}', 'publish', 'running', {}, 'i/1/a', 3, '{epoch}',
                 now() + interval '1 hour')",
            shared(1),
            shared(2),
        ),
    )
    .await;
    let owner = |text| Condition::Owner(Owner::parse(text).expect("an owner"));
    let cases = [
        (vec![], vec![&queued, &running]),
        (vec![Condition::Given(true)], vec![&queued, &running]),
        (vec![Condition::Given(false)], vec![]),
        (
            vec![Condition::StateIn(vec!["queued", "failed"])],
            vec![&queued],
        ),
        (vec![owner("i/1/a")], vec![&running]),
        (vec![owner("i/1/b")], vec![]),
        (vec![Condition::Generation(Generation(3))], vec![&running]),
        (vec![Condition::Generation(Generation(2))], vec![]),
        (vec![Condition::OwnerEpoch(epoch)], vec![&running]),
        (vec![Condition::OwnerEpoch(EpochId::from_bits(2))], vec![]),
        (vec![Condition::LeaseLive], vec![&running]),
        (vec![Condition::LeaseLapsed], vec![]),
        (
            vec![Condition::LeaseLive, Condition::StateIn(vec!["queued"])],
            vec![],
        ),
    ];
    let pool = support::pool(&database, 1);
    for (conditions, expected) in cases {
        let name = format!("{conditions:?}");
        let guard = conditions.into_iter().fold(Guard::new(), Guard::and);
        let mut tx = pool.begin(Mode::Write).await.expect("a transaction");
        let update = diesel::update(operation::table)
            .filter(predicate::<operation::table>(&guard).expect("columns"))
            .set(operation::last_event.eq(1))
            .returning(operation::id);
        let mut rows: Vec<String> = tx.load(update).await.expect("the update runs");
        tx.rollback().await;
        rows.sort();
        assert_eq!(rows.iter().collect::<Vec<_>>(), expected, "{name}");
    }
    support::run(
        &client,
        "UPDATE operation SET lease_until = now() WHERE state = 'running'",
    )
    .await;
    let mut tx = pool.begin(Mode::Write).await.expect("a transaction");
    let lapsed = predicate::<operation::table>(&Guard::new().and(Condition::LeaseLapsed));
    let rows: Vec<String> = tx
        .load(
            operation::table
                .filter(lapsed.expect("a column"))
                .select(operation::id),
        )
        .await
        .expect("the query runs");
    assert_eq!(rows, [running]);
    tx.rollback().await;
}

#[test]
fn a_condition_on_a_column_the_table_lacks_is_a_fault_and_not_left_out() {
    let guard = Guard::new().and(Condition::LeaseLive);
    assert!(matches!(
        predicate::<draft::table>(&guard),
        Err(StoreError::Fault)
    ));
}
