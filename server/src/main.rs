//! The binary: the enforced rules, and nothing that could name others.

use std::process::ExitCode;

use bronzeward_core::rules::Enforced;

#[tokio::main]
async fn main() -> ExitCode {
    bronzeward_server::commands::process(Enforced, |renderer| renderer).await
}
