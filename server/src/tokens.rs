//! `bronzeward token …`: the operator's tool for automation tokens (PA §10.2).
//!
//! It needs the database and the configuration's deny list, and no running server. A
//! token is printed once, by the caller, and never logged. Never in this module: a rule;
//! `engine::tokens` decides.

use std::path::PathBuf;
use std::sync::Arc;

use bronzeward_core::epoch::ProcessEpoch;
use bronzeward_core::fence::Owner;
use bronzeward_core::id::PrincipalId;
use bronzeward_core::principal::{Role, Roles};
use bronzeward_core::rules::Rules;
use bronzeward_engine::ports::Entropy;
use bronzeward_engine::ports::store::{ListedToken, RequestReads, Snapshot, Store};
use bronzeward_engine::tokens::{Human, Issued, NewService, Service, Tokens};
use bronzeward_engine::world::{Db, Process};
use bronzeward_postgres::migrate;
use bronzeward_postgres::session::Pool;
use bronzeward_postgres::store::PgStore;
use clap::{Args, Subcommand};

use crate::config::Config;
use crate::parts::{Real, SystemEntropy};
use crate::run::{self, ServeError, part};

#[derive(Debug, Args)]
pub struct Common {
    #[arg(long)]
    config: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a service identity and print its first token.
    Issue {
        #[command(flatten)]
        common: Common,
        #[arg(long)]
        name: String,
        /// An `idn_…` identifier, or `<issuer>|<subject>`.
        #[arg(long)]
        responsible: String,
        /// Who runs this command: an `idn_…` identifier, or `<issuer>|<subject>`.
        #[arg(long)]
        operator: String,
        /// `viewer`, `author` or `publisher`; may be given more than once.
        #[arg(long = "role", required = true)]
        roles: Vec<String>,
        /// 1 to 90; 30 without it.
        #[arg(long)]
        days: Option<i64>,
    },
    /// Replace a service identity's token and print the new one.
    Rotate {
        #[command(flatten)]
        common: Common,
        /// An `idn_…` identifier, or a name.
        #[arg(long)]
        identity: String,
        #[arg(long)]
        operator: String,
        /// The roles of the token before, without it.
        #[arg(long = "role")]
        roles: Vec<String>,
        #[arg(long)]
        days: Option<i64>,
    },
    /// Revoke a service identity's token; the identity stays.
    Revoke {
        #[command(flatten)]
        common: Common,
        #[arg(long)]
        identity: String,
        #[arg(long)]
        operator: String,
    },
    /// List every token ever issued.
    List {
        #[command(flatten)]
        common: Common,
    },
}

impl TokenCommand {
    fn config(&self) -> &PathBuf {
        match self {
            Self::Issue { common, .. }
            | Self::Rotate { common, .. }
            | Self::Revoke { common, .. }
            | Self::List { common } => &common.config,
        }
    }
}

/// Runs the tool; the lines are for the operator's terminal.
pub async fn run<R: Rules>(command: TokenCommand, rules: R) -> Result<Vec<String>, ServeError> {
    let config = Config::read(command.config())?;
    let db: Db<Real<R>> = database(&config, rules, "token-tool").await?;
    let access = run::access(&config)?;
    let tokens = Tokens {
        db: &db,
        access: &access,
    };
    let refused = |refusal: bronzeward_engine::tokens::Refusal| ServeError::Token(refusal);
    match command {
        TokenCommand::Issue {
            name,
            responsible,
            operator,
            roles,
            days,
            ..
        } => {
            let new = NewService {
                name,
                responsible: human(&responsible, "--responsible")?,
                roles: parsed(&roles)?,
                days,
            };
            let operator = human(&operator, "--operator")?;
            let issued = tokens.issue(&new, &operator).await.map_err(refused)?;
            Ok(printed(&issued))
        }
        TokenCommand::Rotate {
            identity,
            operator,
            roles,
            days,
            ..
        } => {
            let operator = human(&operator, "--operator")?;
            let roles = parsed(&roles)?;
            let roles = (!roles.is_empty()).then_some(&roles);
            let issued = tokens
                .rotate(&service(identity), roles, days, &operator)
                .await
                .map_err(refused)?;
            Ok(printed(&issued))
        }
        TokenCommand::Revoke {
            identity, operator, ..
        } => {
            let operator = human(&operator, "--operator")?;
            let revoked = tokens
                .revoke(&service(identity), &operator)
                .await
                .map_err(refused)?;
            Ok(vec![format!("revoked {revoked}")])
        }
        TokenCommand::List { .. } => {
            let listed = tokens.list().await.map_err(refused)?;
            Ok(listed.iter().map(line).collect())
        }
    }
}

/// The database half of a world for a command of the operator's, named `tool` where it writes.
pub(crate) async fn database<R: Rules>(
    config: &Config,
    rules: R,
    tool: &str,
) -> Result<Db<Real<R>>, ServeError> {
    let unread = |_| part("database", "could not be read");
    let pool = Pool::new(run::sessions(&config.database)?).map_err(unread)?;
    migrate::check(&pool).await?;
    let store = PgStore::new(pool);
    let mut snapshot = store.snapshot().await.map_err(unread)?;
    let installation = snapshot.installation().await.map_err(unread)?;
    snapshot.close().await;
    let owner = Owner::new(tool, std::process::id(), SystemEntropy.bits())
        .map_err(|_| part("owner", "no owner string could be made"))?;
    let process = Process {
        owner,
        epoch: ProcessEpoch(installation.epoch),
    };
    Ok(Db::new(
        Arc::new(store),
        Arc::new(SystemEntropy),
        rules,
        process,
    ))
}

fn human(text: &str, place: &'static str) -> Result<Human, ServeError> {
    if let Ok(id) = PrincipalId::parse(text) {
        return Ok(Human::Identity(id));
    }
    match text.rsplit_once('|') {
        Some((issuer, subject)) if !issuer.is_empty() && !subject.is_empty() => {
            Ok(Human::Subject {
                issuer: issuer.to_owned(),
                subject: subject.to_owned(),
            })
        }
        _ => Err(part(place, "is an idn identifier or <issuer>|<subject>")),
    }
}

fn service(text: String) -> Service {
    match PrincipalId::parse(&text) {
        Ok(id) => Service::Identity(id),
        Err(_) => Service::Name(text),
    }
}

fn parsed(roles: &[String]) -> Result<Roles, ServeError> {
    roles
        .iter()
        .map(|role| Role::parse(role).ok_or_else(|| part("--role", "is no role")))
        .collect()
}

/// The one place a token's text leaves the process.
fn printed(issued: &Issued) -> Vec<String> {
    vec![
        format!("identity {}", issued.identity),
        format!("expires {}", issued.expires_at.to_rfc3339()),
        format!("token {}", issued.token.expose().as_str()),
    ]
}

fn line(token: &ListedToken) -> String {
    let roles: Vec<&str> = token.roles.iter().map(|role| role.as_str()).collect();
    let state = match (token.identity_revoked, token.revoked_at) {
        (true, _) => "identity-revoked".to_owned(),
        (false, Some(at)) => format!("revoked {}", at.to_rfc3339()),
        (false, None) => "unrevoked".to_owned(),
    };
    format!(
        "{} {} {} responsible {} roles {} issued {} expires {} epoch {} {state}",
        token.id,
        token.identity,
        token.name,
        token.responsible,
        roles.join(","),
        token.issued_at.to_rfc3339(),
        token.expires_at.to_rfc3339(),
        token.epoch,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_human_is_named_by_identifier_or_by_issuer_and_subject() {
        let named = human("https://idp.example|h-ada", "--operator").ok();
        assert_eq!(
            named,
            Some(Human::Subject {
                issuer: "https://idp.example".to_owned(),
                subject: "h-ada".to_owned(),
            })
        );
        let id = PrincipalId::from_bits(7);
        assert_eq!(
            human(&id.to_string(), "--operator").ok(),
            Some(Human::Identity(id))
        );
        assert!(human("ada", "--operator").is_err());
        assert!(human("|ada", "--operator").is_err());
    }
}
