//! Publish jobs: each claimed and ended once, and never by an owner whose lease lapsed.

use bronzeward_core::fence::Generation;
use bronzeward_core::problem::Problem;
use bronzeward_core::rules::{Enforced, Rule, Rules};
use bronzeward_core::time::Span;
use bronzeward_engine::publish::job::{self, NotOwned};
use bronzeward_engine::tx::Failure;
use bronzeward_harness::Without;
use bronzeward_harness::postgres::Database;

use super::support::{self, epoch, id};
use super::world::{Stored, process};
use crate::session::Pool;

/// Queues `jobs` publications of as many draft revisions.
async fn queued(database: &Database, jobs: u32) {
    let client = support::session(database).await;
    support::inventory(&client).await;
    let sql = format!(
        "INSERT INTO operation (id, kind, state, cluster_id, draft_id, draft_revision, created_by,
             created_role, epoch, created_at)
         SELECT 'op_' || substr(translate(encode(sha256(n::text::bytea), 'hex'), '0189', 'ghij'),
                1, 25) || 'a', 'publish', 'queued', '{}', '{}', n, '{}', 'publisher', '{}', now()
           FROM generate_series(1, {jobs}) n",
        id("cl", 0),
        id("drf", 0),
        id("idn", 0),
        epoch(),
    );
    support::run(&client, &sql).await;
}

/// Claims and fails jobs until none is left; counts what it ended.
async fn claimer<R: Rules>(pool: Pool, rules: R, name: String, lease: Span) -> u32 {
    let db = process(&pool, rules, &name);
    let mut ended = 0;
    loop {
        match job::claim::<Stored<R>>(&db, lease).await {
            Ok(owned) => {
                let problem = Problem::internal("It ends here.");
                match job::fail(&db, &owned, &problem).await {
                    Ok(()) => ended += 1,
                    Err(Failure::Refused(NotOwned::Lost)) => {}
                    // In the control another claimer may have ended the job that this one
                    // then claimed; in the run with every rule it would be missing in the sum.
                    Err(Failure::Integrity("operation_outcome")) => {}
                    Err(failure) => panic!("{failure:?}"),
                }
            }
            Err(Failure::Integrity("operation_outcome")) => {}
            Err(Failure::Refused(NotOwned::Nothing)) => return ended,
            Err(failure) => panic!("{failure:?}"),
        }
    }
}

/// Eight claimers at `jobs` publications, again and again until none is queued. Gives how
/// many were ended, and how many were claimed more than once.
async fn race<R: Rules>(rules: R, jobs: u32) -> (u32, i64) {
    let database = support::migrated().await;
    queued(&database, jobs).await;
    let pool = support::pool(&database, 8);
    let client = support::session(&database).await;
    let mut ended = 0;
    // A claimer that met another's claim sees nothing and returns.
    let left = "SELECT count(*) FROM operation WHERE state = 'queued'";
    while support::count(&client, left).await > 0 {
        let claimers: Vec<_> = (0..8)
            .map(|number| {
                let name = format!("claimer-{number}");
                tokio::spawn(claimer(pool.clone(), rules, name, Span::seconds(60)))
            })
            .collect();
        for claimer in claimers {
            ended += claimer.await.expect("a claimer ends");
        }
    }
    let twice = "SELECT count(*) FROM (SELECT 1 FROM timeline_event WHERE kind = 'claimed'
                 GROUP BY operation_id HAVING count(*) > 1) t";
    (ended, support::count(&client, twice).await)
}

// covers: PA-TX-3
#[tokio::test]
async fn four_hundred_jobs_and_eight_claimers_claim_and_end_each_job_once() {
    assert_eq!(race(Enforced, 400).await, (400, 0));
    // With the row lock the predicate is never in doubt, and with the predicate the lock is
    // not needed: the control drops both.
    let bare = Without::rules(&[Rule::FencedRowLockedFirst, Rule::JobEligible]);
    let (_, twice) = race(bare, 40).await;
    assert!(
        twice > 0,
        "the control claims a job that another has claimed"
    );
}

// covers: PA-JOB-1
#[tokio::test]
async fn a_lapsed_owner_neither_extends_nor_ends_its_job_even_before_another_claim() {
    let database = support::migrated().await;
    queued(&database, 1).await;
    let pool = support::pool(&database, 2);
    let first = process(&pool, Enforced, "first");
    let lapsed = job::claim(&first, Span::millis(0)).await.expect("a claim");
    let problem = Problem::internal("It ends here.");
    let extended = job::extend(&first, &lapsed, Span::seconds(60)).await;
    assert!(matches!(extended, Err(Failure::Refused(NotOwned::Lost))));
    let ended = job::fail(&first, &lapsed, &problem).await;
    assert!(matches!(ended, Err(Failure::Refused(NotOwned::Lost))));

    let second = process(&pool, Enforced, "second");
    let claimed = job::claim(&second, Span::seconds(60))
        .await
        .expect("a claim");
    assert_eq!(claimed.fence.generation, Generation(2));
    let leased = job::claim(&first, Span::seconds(60)).await;
    assert!(matches!(leased, Err(Failure::Refused(NotOwned::Nothing))));
    let stale = job::fail(&first, &lapsed, &problem).await;
    assert!(matches!(stale, Err(Failure::Refused(NotOwned::Lost))));
    job::extend(&second, &claimed, Span::seconds(60))
        .await
        .expect("the owner extends");
    job::fail(&second, &claimed, &problem)
        .await
        .expect("the owner ends it");

    // Without the live-lease term a lapsed owner ends the job.
    let database = support::migrated().await;
    queued(&database, 1).await;
    let pool = support::pool(&database, 2);
    let control = process(&pool, Without::rule(Rule::LeaseLive), "first");
    let lapsed = job::claim(&control, Span::millis(0))
        .await
        .expect("a claim");
    job::fail(&control, &lapsed, &problem)
        .await
        .expect("the control's defect");
}
