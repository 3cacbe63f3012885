//! The server's configuration file: YAML, every key known, secrets only by file.
//!
//! The composition root reads it once. An error names the place and the rule, never the
//! value that stands there. Never in this module: a secret, or a default for what only the
//! operator can know (`execution.maxTransportDeadline`).

mod value;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use value::{Bytes, Lasting};

/// Why a configuration is refused: where, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("configuration: {place}: {rule}")]
pub struct ConfigError {
    pub place: String,
    pub rule: &'static str,
}

fn refuse(place: impl Into<String>, rule: &'static str) -> ConfigError {
    ConfigError {
        place: place.into(),
        rule,
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// `host:port`, plain HTTP: TLS ends in front of the server (PA §9.1).
    pub listen: std::net::SocketAddr,
    pub database: Database,
    pub auth: Auth,
    pub renderer: Option<Renderer>,
    pub provider: Option<Provider>,
    pub ingestion: Option<Ingestion>,
    pub execution: Option<Execution>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Database {
    /// A connection string without a password.
    pub dsn: String,
    pub password_file: Option<PathBuf>,
    /// Connections of the pool.
    #[serde(default = "default_connections")]
    pub connections: usize,
}

fn default_connections() -> usize {
    16
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Auth {
    pub oidc: Oidc,
    pub roles: Roles,
    #[serde(default)]
    pub denied_subjects: Vec<DeniedSubject>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Oidc {
    pub issuer: String,
    pub audience: String,
    pub groups_claim: String,
    pub display_claim: Option<String>,
    #[serde(default = "default_max_token_lifetime")]
    pub max_token_lifetime: Lasting,
    #[serde(default, rename = "plainHTTPHosts")]
    pub plain_http_hosts: Vec<String>,
}

fn default_max_token_lifetime() -> Lasting {
    Lasting(Duration::from_secs(15 * 60))
}

/// Groups per role (PA §10.1).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Roles {
    pub viewer: Vec<String>,
    pub author: Vec<String>,
    pub publisher: Vec<String>,
    pub approver: Vec<String>,
    pub recovery_admin: Vec<String>,
}

/// A human by issuer and subject, or a service identity by identifier, name, or both
/// (PA §10.4).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeniedSubject {
    pub iss: Option<String>,
    pub sub: Option<String>,
    pub identity: Option<String>,
    pub name: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Renderer {
    pub worker: PathBuf,
    #[serde(default = "default_workers")]
    pub workers: usize,
    #[serde(default = "default_render_deadline")]
    pub deadline: Lasting,
    #[serde(default = "default_render_memory")]
    pub memory: Bytes,
    #[serde(default)]
    pub confinement: Confinement,
}

fn default_workers() -> usize {
    2
}

fn default_render_deadline() -> Lasting {
    Lasting(Duration::from_secs(30))
}

fn default_render_memory() -> Bytes {
    Bytes(512 << 20)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confinement {
    #[default]
    Required,
    BestEffort,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Provider {
    pub address: String,
    #[serde(default, rename = "plainHTTPHosts")]
    pub plain_http_hosts: Vec<String>,
    /// The PEM file of the authority that signs the provider's certificate.
    pub ca_file: Option<PathBuf>,
    pub keys: Keys,
    pub ingestion_token_file: PathBuf,
    pub compiler_token_file: PathBuf,
    pub executor_token_file: PathBuf,
    pub metadata_token_file: PathBuf,
    pub report_token_file: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    pub baseline: String,
    pub staging: String,
    pub digest: String,
    pub artifact: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Ingestion {
    pub instance: String,
    #[serde(default = "default_heartbeat")]
    pub heartbeat: Lasting,
    #[serde(default = "default_ingestion_lease")]
    pub lease: Lasting,
    #[serde(default = "default_absolute_expiry")]
    pub absolute_expiry: Lasting,
    #[serde(default = "default_sweep")]
    pub sweep: Lasting,
}

fn default_heartbeat() -> Lasting {
    Lasting(Duration::from_secs(5))
}

fn default_ingestion_lease() -> Lasting {
    Lasting(Duration::from_secs(15))
}

fn default_absolute_expiry() -> Lasting {
    Lasting(Duration::from_secs(600))
}

fn default_sweep() -> Lasting {
    Lasting(Duration::from_secs(15))
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Execution {
    pub instance: String,
    #[serde(default = "default_settle_floor")]
    pub settle_floor: Lasting,
    pub max_transport_deadline: Lasting,
    #[serde(default = "default_execution_lease")]
    pub lease: Lasting,
    #[serde(default = "default_recovery_interval")]
    pub recovery_interval: Lasting,
    #[serde(default = "default_drift_interval")]
    pub drift_interval: Lasting,
    #[serde(default)]
    pub plan_defaults: PlanDefaults,
}

/// The least a settle may be, whatever the deployment says (EaR 5.2).
pub const LEAST_SETTLE_FLOOR: Duration = Duration::from_secs(30);

fn default_settle_floor() -> Lasting {
    Lasting(LEAST_SETTLE_FLOOR)
}

fn default_execution_lease() -> Lasting {
    Lasting(Duration::from_secs(30))
}

fn default_recovery_interval() -> Lasting {
    Lasting(Duration::from_secs(15))
}

fn default_drift_interval() -> Lasting {
    Lasting(Duration::from_secs(300))
}

/// What a plan takes where its request leaves a value out (PA choice 17.37).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct PlanDefaults {
    pub expires_in: Lasting,
    pub max_observation_age: Lasting,
    pub check_validity: Lasting,
    pub transport_deadline: Lasting,
    pub verification_deadline: Lasting,
    pub max_attempts: u8,
}

impl Default for PlanDefaults {
    fn default() -> Self {
        let seconds = |seconds| Lasting(Duration::from_secs(seconds));
        Self {
            expires_in: seconds(24 * 3600),
            max_observation_age: seconds(300),
            check_validity: seconds(300),
            transport_deadline: seconds(60),
            verification_deadline: seconds(600),
            max_attempts: 3,
        }
    }
}

impl Config {
    /// Reads and checks a file. Relative paths are from its folder.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let text = fs::read_to_string(path).map_err(|_| refuse("file", "cannot be read"))?;
        let mut config = parse(&text)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        config.resolve(folder);
        config.check()?;
        Ok(config)
    }

    fn resolve(&mut self, folder: &Path) {
        let from = |path: &mut PathBuf| *path = folder.join(&*path);
        self.database.password_file.iter_mut().for_each(from);
        self.renderer
            .iter_mut()
            .for_each(|part| from(&mut part.worker));
        if let Some(provider) = &mut self.provider {
            provider.ca_file.iter_mut().for_each(from);
            from(&mut provider.ingestion_token_file);
            from(&mut provider.compiler_token_file);
            from(&mut provider.executor_token_file);
            from(&mut provider.metadata_token_file);
            provider.report_token_file.iter_mut().for_each(from);
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if password_in(&self.database.dsn) {
            return Err(refuse("database.dsn", "a password stands in its own file"));
        }
        for (number, subject) in self.auth.denied_subjects.iter().enumerate() {
            let human = subject.iss.is_some() && subject.sub.is_some();
            let service = subject.identity.is_some() || subject.name.is_some();
            let mixed = service && (subject.iss.is_some() || subject.sub.is_some());
            if mixed || human == service {
                return Err(refuse(
                    format!("auth.deniedSubjects[{number}]"),
                    "names a human by iss and sub, or a service identity by identity and name",
                ));
            }
        }
        if let Some(provider) = &self.provider {
            provider.check()?;
            if self.ingestion.is_none() {
                return Err(refuse("ingestion", "is required with a provider"));
            }
            if self.renderer.is_none() {
                return Err(refuse("renderer", "is required with a provider"));
            }
        }
        self.ingestion.iter().try_for_each(Ingestion::check)?;
        self.execution.iter().try_for_each(Execution::check)
    }
}

impl Provider {
    fn check(&self) -> Result<(), ConfigError> {
        let keys = [
            &self.keys.baseline,
            &self.keys.staging,
            &self.keys.digest,
            &self.keys.artifact,
        ];
        if keys.iter().collect::<BTreeSet<_>>().len() != keys.len() {
            return Err(refuse("provider.keys", "are all different"));
        }
        // `transit/<key>@v<N>` is at most 256 bytes at any version (IC §4.1).
        if self.keys.digest.len() > 227 {
            return Err(refuse("provider.keys.digest", "is at most 227 bytes"));
        }
        let files = [
            (
                "provider.ingestionTokenFile",
                Some(&self.ingestion_token_file),
            ),
            (
                "provider.compilerTokenFile",
                Some(&self.compiler_token_file),
            ),
            (
                "provider.executorTokenFile",
                Some(&self.executor_token_file),
            ),
            (
                "provider.metadataTokenFile",
                Some(&self.metadata_token_file),
            ),
            ("provider.reportTokenFile", self.report_token_file.as_ref()),
        ];
        let mut seen = BTreeSet::new();
        for (place, file) in files {
            let Some(file) = file else { continue };
            if !seen.insert(file) {
                return Err(refuse(place, "is another identity's file"));
            }
            let mode = fs::metadata(file)
                .map_err(|_| refuse(place, "cannot be read"))?
                .permissions()
                .mode();
            if mode & 0o077 != 0 {
                return Err(refuse(place, "is readable by its owner alone (mode 0600)"));
            }
        }
        Ok(())
    }
}

impl Ingestion {
    fn check(&self) -> Result<(), ConfigError> {
        instance("ingestion.instance", &self.instance)?;
        if self.heartbeat.0.is_zero() || self.sweep.0.is_zero() {
            return Err(refuse(
                "ingestion",
                "heartbeat and sweep are longer than zero",
            ));
        }
        // IC §3.2.
        if self.heartbeat.0 >= self.lease.0 || self.lease.0 >= self.absolute_expiry.0 {
            return Err(refuse(
                "ingestion",
                "heartbeat is shorter than lease, and lease than absoluteExpiry",
            ));
        }
        Ok(())
    }
}

impl Execution {
    fn check(&self) -> Result<(), ConfigError> {
        instance("execution.instance", &self.instance)?;
        if self.settle_floor.0 < LEAST_SETTLE_FLOOR {
            return Err(refuse("execution.settleFloor", "is at least 30s"));
        }
        for (place, length) in [
            (
                "execution.maxTransportDeadline",
                self.max_transport_deadline,
            ),
            ("execution.lease", self.lease),
            ("execution.recoveryInterval", self.recovery_interval),
            ("execution.driftInterval", self.drift_interval),
        ] {
            if length.0.is_zero() {
                return Err(refuse(place, "is longer than zero"));
            }
        }
        let defaults = &self.plan_defaults;
        if defaults.transport_deadline.0 > self.max_transport_deadline.0
            || defaults.transport_deadline.0 > defaults.verification_deadline.0
        {
            return Err(refuse(
                "execution.planDefaults.transportDeadline",
                "is at most maxTransportDeadline and verificationDeadline",
            ));
        }
        if !(1..=10).contains(&defaults.max_attempts) {
            return Err(refuse("execution.planDefaults.maxAttempts", "is 1 to 10"));
        }
        Ok(())
    }
}

/// The first part of an owner string (IC §3.2).
fn instance(place: &'static str, text: &str) -> Result<(), ConfigError> {
    let spelled = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if spelled && (1..=64).contains(&text.len()) {
        Ok(())
    } else {
        Err(refuse(place, "is 1 to 64 characters of A-Z a-z 0-9 . _ -"))
    }
}

/// Whether a connection string carries a password, as a URL or as key and value pairs.
fn password_in(dsn: &str) -> bool {
    let in_url = dsn
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('@'))
        .is_some_and(|(user, _)| user.contains(':'));
    in_url || dsn.to_ascii_lowercase().contains("password")
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    let tree: serde_json::Value = serde_saphyr::from_str(text)
        .map_err(|_| refuse("file", "is not one YAML document of distinct keys"))?;
    serde_path_to_error::deserialize(tree).map_err(|error| {
        let place = error.path().to_string();
        refuse(
            place,
            "is unknown, missing or not of the form the operator guide gives",
        )
    })
}

#[cfg(test)]
mod tests;
