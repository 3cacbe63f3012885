//! The simulator's command line, behind `./dev sim`, `./dev mutate` and `./dev bench sim`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use bronzeward_core::rules::Rule;
use bronzeward_model::genesis::Genesis;
use bronzeward_model::hazard::Hazard;
use bronzeward_model::seed::{End, Setting, keep_panics, run};
use bronzeward_model::sweep::{Report, sweep, threads};
use bronzeward_model::{mutate, witness};
use bronzeward_without::Without;
use clap::{Parser, Subcommand};
use serde_json::json;

/// Seeds of the gate.
const GATE: u64 = 300;
/// Seeds whose speed is measured.
const SPEED: u64 = 2_000;
/// Steps of a short seed's safety phase.
const SHORT: u64 = 300;
/// Seeds over which a rule is dropped.
const MUTATION: u64 = 3_000;

#[derive(Parser)]
#[command(about = "Runs the production workflows in a simulated world")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs seeds and all witnesses; with --seed, one seed with its trace.
    Sim {
        /// How many seeds, from 0.
        #[arg(long, default_value_t = GATE)]
        seeds: u64,
        /// One seed, with its whole trace.
        #[arg(long, conflicts_with = "shrink")]
        seed: Option<u64>,
        /// The least of a seed's world that still fails as the seed does.
        #[arg(long)]
        shrink: Option<u64>,
        /// Rules to drop, separated by commas.
        #[arg(long, default_value = "")]
        without: String,
        /// What every seed is about, instead of what it draws.
        #[arg(long)]
        hazard: Option<String>,
        /// Writes the figures into this page, between its two marks, where every seed was clean.
        #[arg(long)]
        record: Option<PathBuf>,
    },
    /// How fast seeds run, short and whole ones, with every judge.
    Speed {
        #[arg(long, default_value_t = SPEED)]
        seeds: u64,
    },
    /// The witnesses of a rule, or those whose name has this part: what is amiss with each.
    Witness {
        part: String,
        /// The traces too, without the rules of each.
        #[arg(long)]
        trace: bool,
    },
    /// Drops every rule in turn, or one, and says what caught it.
    Mutate {
        rule: Option<String>,
        #[arg(long, default_value_t = MUTATION)]
        seeds: u64,
    },
}

fn main() -> ExitCode {
    keep_panics();
    let command = Arguments::parse().command;
    match serve(command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bw-sim: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(line: std::fmt::Arguments<'_>) {
    // A closed standard output ends nothing.
    let _closed = writeln!(std::io::stdout(), "{line}");
}

fn witnesses(genesis: &Genesis, part: &str, trace: bool) -> bool {
    let of = |one: &&witness::Witness| {
        let first = one.rules.first();
        one.name.contains(part) || first.is_some_and(|rule| rule.name() == part)
    };
    let mut found = witness::every().filter(of).peekable();
    if found.peek().is_none() {
        say(format_args!("no witness is called {part}"));
        return false;
    }
    let mut good = true;
    for one in found {
        if trace {
            let rules = Without::rules(one.rules);
            let (end, text) = witness::traced(genesis, rules, one.act);
            say(format_args!("{text}{end:?}"));
        }
        let amiss = witness::amiss(genesis, one);
        good &= amiss.is_none();
        let said = amiss.unwrap_or_else(|| "as it says".to_owned());
        say(format_args!("{}: {said}", one.name));
    }
    good
}

fn serve(command: Command) -> Result<bool, String> {
    let genesis = Genesis::make()?;
    match command {
        Command::Sim {
            seeds,
            seed,
            shrink,
            without,
            hazard,
            record,
        } => {
            let rules = Without::named(&without).map_err(|error| error.to_string())?;
            let named = |name: String| {
                Hazard::named(&name).ok_or_else(|| format!("no hazard is called {name}"))
            };
            let setting = Setting {
                rules,
                hazard: hazard.map(named).transpose()?,
                ..Setting::default()
            };
            match (seed, shrink) {
                (Some(seed), _) => Ok(one(&genesis, seed, &setting)),
                (None, Some(seed)) => Ok(shrunk(&genesis, seed, &setting)),
                (None, None) => gate(&genesis, seeds, &setting, record.as_deref()),
            }
        }
        Command::Speed { seeds } => speed(&genesis, seeds),
        Command::Witness { part, trace } => Ok(witnesses(&genesis, &part, trace)),
        Command::Mutate { rule, seeds } => {
            let Some(name) = rule else {
                let found = mutate::planted(&genesis, seeds, &say);
                return Ok(mutate::mutate(&genesis, Rule::all(), seeds, &say)? && found);
            };
            let found = Rule::all().iter().find(|rule| rule.name() == name);
            let rule = *found.ok_or_else(|| format!("no rule is called {name}"))?;
            mutate::mutate(&genesis, &[rule], seeds, &say)
        }
    }
}

fn one(genesis: &Genesis, seed: u64, setting: &Setting) -> bool {
    let traced = Setting {
        traced: true,
        ..setting.clone()
    };
    let outcome = run(genesis, seed, &traced);
    say(format_args!("seed {seed}"));
    say(format_args!("{}", outcome.trace));
    told(seed, &outcome.end, setting, "seed")
}

/// The seed and the command that replays it stand last; `by` is its option.
fn told(seed: u64, end: &End, setting: &Setting, by: &str) -> bool {
    let without = setting.rules.names();
    let mut rules = match without.is_empty() {
        true => String::new(),
        false => format!(" --without {without}"),
    };
    if let Some(hazard) = setting.hazard {
        rules = format!("{rules} --hazard {}", hazard.name());
    }
    let how = match end {
        End::Clean => {
            say(format_args!("seed {seed}: clean"));
            return true;
        }
        End::Violated(violation) => format!("{}: {}", violation.invariant, violation.said),
        End::Error(error) => format!("ERROR {error}"),
        End::Restless(what) => format!("ERROR the healed world does not come to rest: {what}"),
    };
    say(format_args!(
        "seed {seed}: {how}\nreplay: ./dev sim --{by} {seed}{rules}"
    ));
    false
}

fn gate(
    genesis: &Genesis,
    seeds: u64,
    setting: &Setting,
    page: Option<&Path>,
) -> Result<bool, String> {
    let began = Instant::now();
    say(format_args!("seeds 0 to {}", seeds.saturating_sub(1)));
    let report = sweep(genesis, 0..seeds, setting, &|done| {
        let spent = began.elapsed().as_secs_f64();
        let left = spent / done as f64 * (seeds.saturating_sub(done)) as f64;
        eprint!("\r{done} of {seeds} seeds, {left:.0} s left ");
    });
    eprintln!();
    let figures = figures(&report, began.elapsed().as_secs_f64());
    say(format_args!("{figures}"));
    let mut clean = report.failed.is_empty();
    for (seed, end) in report.failed.iter().take(10) {
        told(*seed, end, setting, "seed");
    }
    if setting.rules == Without::nothing() {
        clean &= report.seen.all(seeds, &say);
        clean &= witness::all(genesis, &say);
    }
    if let Some(page) = page.filter(|_| clean) {
        record(page, seeds, &figures)?;
    }
    Ok(clean)
}

/// What a page of figures is written between.
const MARKS: [&str; 2] = ["<!-- figures -->\n", "<!-- end of figures -->"];

fn record(page: &Path, seeds: u64, figures: &str) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", page.display());
    let text = std::fs::read_to_string(page).map_err(failed)?;
    let [begin, end] = MARKS;
    let parts = text.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(end)?;
        Some((before, after))
    });
    let Some((before, after)) = parts else {
        return Err(format!("{}: no marks of figures", page.display()));
    };
    let block = format!("```\n./dev sim --seeds {seeds} --record\n{figures}\n```\n");
    std::fs::write(page, format!("{before}{begin}{block}{end}{after}")).map_err(failed)
}

/// Prints each figure, and appends it as a line of JSON to the file of the other benchmarks.
fn speed(genesis: &Genesis, seeds: u64) -> Result<bool, String> {
    let mut clean = true;
    let lengths = [
        (SHORT, false),
        (SHORT, true),
        (Setting::default().steps, true),
    ];
    for (steps, heals) in lengths {
        let setting = Setting {
            steps,
            heals,
            ..Setting::default()
        };
        let began = Instant::now();
        let report = sweep(genesis, 0..seeds, &setting, &|_| {});
        let seconds = began.elapsed().as_secs_f64();
        clean &= report.failed.is_empty();
        let per_second = report.seeds as f64 / seconds;
        let each = report.steps as f64 / report.seeds.max(1) as f64;
        let threads = threads();
        let then = match heals {
            true => " or more and the healed phase",
            false => " and no more",
        };
        say(format_args!(
            "sim: {per_second:.0} seeds/s on {threads} threads, {steps} steps{then}, \
             {each:.0} steps in all; {:.2} µs a step",
            seconds * threads as f64 * 1e6 / report.steps.max(1) as f64
        ));
        let line = json!({ "bench": "sim", "figures": {
            "safetySteps": steps, "healedPhase": heals, "seedsPerSecond": per_second,
            "stepsPerSeed": each, "threads": threads,
        }});
        if let Some(path) = std::env::var_os("BRONZEWARD_BENCH_LINES") {
            let file = OpenOptions::new().append(true).create(true).open(path);
            let written = file.and_then(|mut file| writeln!(file, "{line}"));
            written.map_err(|error| format!("the figures' file: {error}"))?;
        }
    }
    Ok(clean)
}

fn figures(report: &Report, seconds: f64) -> String {
    let mut lines = vec![format!(
        "{} seeds, {} steps, {} commits in {seconds:.1} s on {} threads: {:.0} seeds/s, \
         {:.0} steps a seed",
        report.seeds,
        report.steps,
        report.commits,
        threads(),
        report.seeds as f64 / seconds,
        report.steps as f64 / report.seeds.max(1) as f64
    )];
    let faults = report.struck.iter();
    lines.extend(faults.map(|(fault, times)| format!("{times:>9}  fault: {}", fault.name())));
    let seen = report.seen.counts().into_iter();
    lines.extend(seen.map(|(what, times)| format!("{times:>9}  sometimes: {what}")));
    let moves = report.seen.moves.iter();
    lines.extend(
        moves.map(|((what, from, to), times)| format!("{times:>9}  {what}: {from} -> {to}")),
    );
    lines.join("\n")
}

/// Fewer steps, fewer faults, fewer acts, as long as the same invariant is violated.
fn shrunk(genesis: &Genesis, seed: u64, setting: &Setting) -> bool {
    let outcome = run(genesis, seed, setting);
    let End::Violated(wanted) = &outcome.end else {
        return told(seed, &outcome.end, setting, "seed");
    };
    let fails = |setting: &Setting| {
        matches!(run(genesis, seed, setting).end,
            End::Violated(found) if found.invariant == wanted.invariant)
    };
    let least = bronzeward_model::shrink::shrink(setting, &fails);
    say(format_args!("{}", least.said()));
    let traced = Setting {
        traced: true,
        ..least.clone()
    };
    let outcome = run(genesis, seed, &traced);
    say(format_args!("{}", outcome.trace));
    told(seed, &outcome.end, &least, "shrink")
}
