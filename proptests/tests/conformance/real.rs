//! PostgreSQL's side: databases that are set back between cases, a connection a session.
//!
//! Whether a session waits is asked of the server: it does when it has a lock that it was not
//! granted, and nobody who could still end that wait is at work. Nothing is ordered by time.
//! A database has a thread and a runtime of its own, since its connections outlive a case.
//! Never in this module: a step's meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bronzeward_core::rules::Rule;
use bronzeward_engine::ports::store::{Store, StoreTx};
use bronzeward_harness::postgres::{Database, Template};
use bronzeward_harness::shared;
use bronzeward_postgres::migrate::{Founding, MIGRATIONS, Migrator};
use bronzeward_postgres::session::{Pool, Settings};
use bronzeward_postgres::store::PgStore;
use tokio::sync::{Notify, OnceCell};
use tokio::task::JoinHandle;
use tokio_postgres::{Client, NoTls};

use crate::actor::{Actor, Answer};
use crate::furniture;
use crate::op::{self, Op, Who};
use crate::run::{Outcome, Side, play};

/// A step that has neither answered nor waits for somebody by then is a fault of the test.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a step is given to answer before the server's locks are looked at, again and again.
const LOOK: Duration = Duration::from_millis(1);
/// Circles are broken soon after they close; what is waited for is the server's own answer.
const DEADLOCK: &str = "10ms";

type Step = JoinHandle<(Actor<PgStore>, Answer)>;

struct Job {
    steps: Vec<op::Step>,
    outcome: Sender<Outcome>,
}

/// A database with its thread.
pub struct Worker(Sender<Job>);

impl Worker {
    /// A database of its own, without the object of the schema that carries the rule.
    pub fn without(rule: Option<Rule>) -> Self {
        let (jobs, received) = channel();
        std::thread::spawn(move || work(&received, rule));
        Self(jobs)
    }

    /// Runs a case; what goes wrong on the way ends the thread, and has been printed by it.
    pub fn play(&self, steps: &[op::Step]) -> Outcome {
        let (outcome, came) = channel();
        let job = Job {
            steps: steps.to_vec(),
            outcome,
        };
        self.0.send(job).expect("the database's thread runs");
        came.recv().expect("the database's thread has an outcome")
    }
}

fn work(jobs: &Receiver<Job>, rule: Option<Rule>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let tasks = tokio::task::LocalSet::new();
    let mut real = tasks.block_on(&runtime, Real::new(rule));
    while let Ok(job) = jobs.recv() {
        let outcome = tasks.block_on(&runtime, async {
            real.set_back().await;
            let outcome = play(&mut real, &job.steps).await;
            real.end().await;
            outcome
        });
        // Who asked may have gone.
        let _unheard = job.outcome.send(outcome);
    }
}

/// Runs a case on a database that no other case uses meanwhile.
pub fn outcome(steps: &[op::Step]) -> Outcome {
    static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());
    let idle = || IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let worker = idle().pop();
    let worker = worker.unwrap_or_else(|| Worker::without(None));
    let outcome = worker.play(steps);
    idle().push(worker);
    outcome
}

struct Real {
    idle: BTreeMap<Who, Actor<PgStore>>,
    busy: BTreeMap<Who, Step>,
    cut: BTreeSet<Who>,
    /// A step has ended.
    ended: Rc<Notify>,
    watcher: Client,
    /// The statements that bring the furniture back.
    back: String,
    database: Database,
}

/// A database as [`furniture`] leaves it.
async fn furnished() -> Database {
    static TEMPLATE: OnceCell<Template> = OnceCell::const_new();
    let template = TEMPLATE.get_or_init(build).await;
    template.fresh().await.expect("a database")
}

async fn build() -> Template {
    let sum = MIGRATIONS[0].checksum();
    let key = format!(
        "conformance_{:02x}{:02x}{:02x}{:02x}",
        sum[0], sum[1], sum[2], sum[3]
    );
    let postgres = shared().postgres().expect("PostgreSQL");
    let template = postgres.template(&key, async |dsn: &str| {
        let settings = Settings::parse(dsn).map_err(|error| error.to_string())?;
        let founding = Founding {
            epoch: furniture::epoch(),
            cursor_key: [7; 32],
        };
        let run = Migrator::new(settings.clone()).run(&founding).await;
        run.map_err(|error| error.to_string())?;
        let store = PgStore::new(Pool::new(settings).map_err(|error| error.to_string())?);
        let mut tx = store.begin().await.map_err(|error| error.to_string())?;
        let furnish = furniture::furnish(&mut tx).await;
        furnish.map_err(|error| error.to_string())?;
        tx.commit().await.map_err(|error| error.to_string())?;
        let name = dsn.rsplit('/').next().unwrap_or_default();
        let admin = connect(&postgres.admin_dsn(name)).await;
        let plans = admin.batch_execute(&furniture::plans()).await;
        plans.map_err(|error| error.to_string())
    });
    template.await.expect("the template is built")
}

async fn connect(dsn: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(dsn, NoTls)
        .await
        .expect("a session");
    tokio::spawn(async move {
        // The client sees the same end at its next call.
        let _seen_by_the_client = connection.await;
    });
    client
}

fn name(who: Who) -> String {
    format!("conformance-{who:?}")
}

/// Keeps a copy of every table that has rows; gives back the statements that restore it.
const KEEP: &str = "
CREATE SCHEMA kept;
CREATE FUNCTION kept.back() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t text;
    columns text;
    there boolean;
    forget text := '';
    remember text := '';
BEGIN
    FOR t IN SELECT relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY oid
    LOOP
        forget := forget || format('DELETE FROM public.%I;', t);
        EXECUTE format('SELECT EXISTS (SELECT FROM public.%I)', t) INTO there;
        CONTINUE WHEN NOT there;
        EXECUTE format('CREATE TABLE kept.%I AS TABLE public.%I', t, t);
        SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
            WHERE attrelid = format('public.%I', t)::regclass
              AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
        remember := remember || format(
            'INSERT INTO public.%I (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM kept.%I;',
            t, columns, columns, t);
    END LOOP;
    RETURN forget || remember;
END $$;";

impl Real {
    async fn new(rule: Option<Rule>) -> Self {
        let database = furnished().await;
        if let Some(rule) = rule {
            let dropped = database.drop_rule(rule).await;
            dropped.expect("the schema carries the rule");
        }
        let watcher = connect(&database.admin_dsn()).await;
        let sooner = format!(
            "ALTER DATABASE {} SET deadlock_timeout = '{DEADLOCK}'; {KEEP}",
            database.name()
        );
        watcher.batch_execute(&sooner).await.expect("a setting");
        let back = watcher.query_one("SELECT kept.back()", &[]).await;
        let back: String = back.expect("the furniture is kept").get(0);
        // No trigger or foreign key of the schema is in the way of this one session.
        let role = "SET session_replication_role = replica";
        watcher.batch_execute(role).await.expect("a role");
        let idle = Who::ALL.map(|who| (who, session(&database, who)));
        Self {
            idle: idle.into(),
            busy: BTreeMap::new(),
            cut: BTreeSet::new(),
            ended: Rc::default(),
            watcher,
            back,
            database,
        }
    }

    /// Brings the furniture back, and nothing else.
    async fn set_back(&self) {
        let back = format!("BEGIN;{}COMMIT", self.back);
        let back = self.watcher.batch_execute(&back).await;
        back.expect("the database is set back");
    }

    /// Ends what a case has left open.
    async fn end(&mut self) {
        loop {
            for actor in self.idle.values_mut() {
                actor.end().await;
            }
            if self.busy.is_empty() {
                break;
            }
            self.settle().await;
        }
        for who in std::mem::take(&mut self.cut) {
            self.idle.insert(who, session(&self.database, who));
        }
    }

    /// Whether every session in a step waits for another, and no circle is to be broken.
    async fn all_wait(&self) -> bool {
        let blocked = self.blocked().await;
        let waits = |who: &Who| blocked.get(who).is_some_and(|by| !by.is_empty());
        self.busy.keys().all(waits) && !circular(&blocked)
    }

    /// Whom each session that was not granted a lock waits for.
    async fn blocked(&self) -> BTreeMap<Who, BTreeSet<Who>> {
        let query =
            "WITH waiting AS MATERIALIZED (SELECT DISTINCT pid FROM pg_locks WHERE NOT granted)
            SELECT mine.application_name, coalesce(array_agg(theirs.application_name)
                FILTER (WHERE theirs.pid IS NOT NULL), '{}')
            FROM waiting JOIN pg_stat_activity mine USING (pid)
            LEFT JOIN pg_stat_activity theirs ON theirs.pid = ANY (pg_blocking_pids(mine.pid))
            WHERE mine.datname = current_database()
            GROUP BY mine.application_name";
        let rows = self.watcher.query(query, &[]).await.expect("the locks");
        let who = |text: &str| Who::ALL.into_iter().find(|who| name(*who) == text);
        let mut blocked = BTreeMap::new();
        for row in &rows {
            let by: Vec<String> = row.get(1);
            if let Some(of) = who(row.get(0)) {
                blocked.insert(of, by.iter().filter_map(|by| who(by)).collect());
            }
        }
        blocked
    }
}

fn session(database: &Database, who: Who) -> Actor<PgStore> {
    let dsn = format!("{}?application_name={}", database.dsn(), name(who));
    let mut settings = Settings::parse(&dsn).expect("an address");
    settings.connections = 1;
    Actor::new(PgStore::new(Pool::new(settings).expect("a pool")))
}

/// Whether somebody waits for itself through others.
fn circular(blocked: &BTreeMap<Who, BTreeSet<Who>>) -> bool {
    blocked.keys().any(|start| {
        let mut reached: BTreeSet<Who> = BTreeSet::new();
        let mut next = vec![*start];
        while let Some(who) = next.pop() {
            for by in blocked.get(&who).into_iter().flatten() {
                if reached.insert(*by) {
                    next.push(*by);
                }
            }
        }
        reached.contains(start)
    })
}

impl Side for Real {
    fn start(&mut self, who: Who, op: &Op) {
        let mut actor = self.idle.remove(&who).expect("a session that is idle");
        let (op, ended) = (op.clone(), Rc::clone(&self.ended));
        let step = tokio::task::spawn_local(async move {
            let answer = actor.act(&op).await;
            ended.notify_one();
            (actor, answer)
        });
        self.busy.insert(who, step);
    }

    async fn outside(&mut self, who: Who, op: &Op) {
        match op {
            Op::Cut => {
                self.cut.insert(who);
                let cut = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = $1";
                let rows = self.watcher.query(cut, &[&name(who)]).await;
                let ended = rows.expect("a cut").iter().all(|row| row.get(0));
                assert!(ended, "the session of {who:?} did not end");
            }
            _ => {
                let lapsed = "SELECT coalesce(bool_and(lease_until < clock_timestamp()), true)
                    FROM staging_claim WHERE lease_until < now() + interval '1 day'";
                let until = Instant::now() + DEADLINE;
                loop {
                    let row = self.watcher.query_one(lapsed, &[]).await;
                    if row.expect("leases").get(0) {
                        return;
                    }
                    assert!(Instant::now() < until, "a short lease does not end");
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }

    async fn settle(&mut self) -> BTreeMap<Who, Answer> {
        let mut told = BTreeMap::new();
        let until = Instant::now() + DEADLINE;
        loop {
            let done: Vec<Who> = self
                .busy
                .iter()
                .filter(|(_, step)| step.is_finished())
                .map(|(who, _)| *who)
                .collect();
            for who in done {
                let step = self.busy.remove(&who).expect("a step");
                let (actor, answer) = step.await.expect("a step does not panic");
                self.idle.insert(who, actor);
                told.insert(who, answer);
            }
            if self.busy.is_empty() {
                return told;
            }
            let ended = tokio::time::timeout(LOOK, self.ended.notified()).await;
            if ended.is_err() && self.all_wait().await {
                return told;
            }
            assert!(
                Instant::now() < until,
                "{:?} neither answer nor wait",
                self.busy.keys()
            );
        }
    }
}
