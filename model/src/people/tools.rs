//! The operator's token tool, as a command beside a server runs it (PA §10.2).
//!
//! A token's text goes to the automation that presents it and nowhere else. Never in this
//! module: which token is due.

use bronzeward_core::principal::{Role, Roles};
use bronzeward_engine::tokens::{Human, Issued, NewService, Refusal, Service, Tokens};

use super::hand::Hand;
use super::view::KEEPER;
use crate::call::call;
use crate::ports::runtime::ISSUER;
use crate::server::Server;
use crate::world::Model;

/// The automation of a world.
pub const AUTOMATION: &str = "bot";

fn human(subject: &str) -> Human {
    Human::Subject {
        issuer: ISSUER.to_owned(),
        subject: subject.to_owned(),
    }
}

fn tokens(server: &Server) -> Tokens<'_, Model> {
    Tokens {
        db: &server.db,
        access: &server.access,
    }
}

/// Replaces the automation's token, as the tool beside this server does: under these roles, or
/// under those it has.
pub async fn rotate(server: &Server, roles: Option<&Roles>) -> Result<Issued, Refusal> {
    let service = Service::Name(AUTOMATION.to_owned());
    let tool = tokens(server);
    tool.rotate(&service, roles, None, &human(KEEPER)).await
}

impl Hand {
    /// Creates the automation's identity with its first token; true where it is done.
    pub async fn issue_token(&self) -> bool {
        let Some(server) = self.server() else {
            return false;
        };
        let new = NewService {
            name: AUTOMATION.to_owned(),
            responsible: human("ann"),
            roles: [Role::Author, Role::Publisher].into(),
            days: None,
        };
        let issued = call(&self.sim, server.id, async move {
            tokens(&server).issue(&new, &human(KEEPER)).await
        });
        self.handed(issued.await)
    }

    /// Replaces its token by one of the current epoch.
    pub async fn rotate_token(&self) -> bool {
        self.rotate_token_to(None).await
    }

    /// The same under other roles.
    pub async fn rotate_token_to(&self, roles: Option<Roles>) -> bool {
        let Some(server) = self.server() else {
            return false;
        };
        let issued = call(&self.sim, server.id, async move {
            rotate(&server, roles.as_ref()).await
        });
        self.handed(issued.await)
    }

    fn handed(&self, issued: Option<Result<Issued, Refusal>>) -> bool {
        let Some(Ok(issued)) = issued else {
            return false;
        };
        let text = issued.token.expose().to_string();
        let mut state = self.sim.state();
        state.outside.credentials.insert(AUTOMATION, text);
        true
    }
}
