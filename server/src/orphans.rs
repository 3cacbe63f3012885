//! The operator's orphan report (PA §6.4): what the engine found, as lines.
//!
//! `commands` calls it. Nothing is printed unless every step succeeded. Never in here: which
//! generation is an orphan, or a provider identity but the report's own.

use bronzeward_core::id::ClusterId;
use bronzeward_core::rules::Rules;
use bronzeward_engine::orphans::{Report, Unreferenced, report};
use bronzeward_openbao::OrphanReport;

use crate::config::Config;
use crate::run::{ServeError, endpoint, part};
use crate::tokens::database;

/// Reports `cluster`'s orphans, or every cluster's that the provider lists.
pub async fn run<R: Rules>(
    config: &Config,
    cluster: Option<&str>,
    rules: R,
) -> Result<Vec<String>, ServeError> {
    let cluster = cluster
        .map(|text| ClusterId::parse(text).map_err(|_| part("--cluster", "is no identifier")))
        .transpose()?;
    let provider = config.provider.as_ref();
    let provider = provider.ok_or(part("provider", "is not configured"))?;
    let token = provider.report_token_file.as_ref();
    let token = token.ok_or(part("provider.reportTokenFile", "is not configured"))?;
    let listing = OrphanReport::new(&endpoint(provider)?, token);
    let db = database(config, rules, "orphan-report").await?;
    let found = report(&db, &listing, cluster).await;
    Ok(lines(&found.map_err(ServeError::Orphans)?))
}

fn lines(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for unreferenced in &report.orphans {
        lines.extend(of_claim("orphan", unreferenced, false));
    }
    for unreferenced in &report.expired {
        lines.extend(of_claim("expired-not-abandoned", unreferenced, true));
    }
    if report.foreign > 0 {
        lines.push(format!("foreign-names {}", report.foreign));
    }
    lines
}

/// A line per path, with what the database records of its claim.
fn of_claim(word: &str, of: &Unreferenced, lease: bool) -> Vec<String> {
    let record = match &of.record {
        None => "unknown".to_owned(),
        Some(record) => {
            let mut text = format!(
                "{} created {} expires {}",
                record.state.as_str(),
                record.created_at.to_rfc3339(),
                record.expires_at.to_rfc3339(),
            );
            if lease {
                let until = record.lease_until.to_rfc3339();
                text.push_str(&format!(" mode {} lease {until}", record.mode.as_str()));
            }
            text
        }
    };
    of.paths
        .iter()
        .map(|path| format!("{word} {path} claim {} {record}", of.claim))
        .collect()
}
