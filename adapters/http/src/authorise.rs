//! The authorisation of a request, over the route table (PA §9.2, §10.3, §12.2).
//!
//! Called for each authenticated request before its headers are read, and before any
//! transaction. Never in this module: a route's roles (the table has them) or the
//! decision (core has it).

use bronzeward_api::bodies::common::Role as WireRole;
use bronzeward_api::routes::{Access, Route, Start};
use bronzeward_core::authority;
use bronzeward_core::installation::StartMode;
use bronzeward_core::principal::{PrincipalKind, Role, Roles};
use bronzeward_core::problem::{Problem, ProblemCode};
use bronzeward_core::rules::Rules;

/// Core's role of a wire role.
pub const fn role(wire: WireRole) -> Role {
    match wire {
        WireRole::Viewer => Role::Viewer,
        WireRole::Author => Role::Author,
        WireRole::Publisher => Role::Publisher,
        WireRole::Approver => Role::Approver,
        WireRole::RecoveryAdmin => Role::RecoveryAdmin,
    }
}

/// The role a request to `route` acts under: none where the route asks for none.
pub fn authorise<R: Rules>(
    rules: &R,
    route: &Route,
    kind: PrincipalKind,
    held: &Roles,
) -> Result<Option<Role>, Problem> {
    match route.access {
        Access::Anonymous | Access::Credential => Ok(None),
        Access::AnyRole | Access::Roles(_) => {
            let allowed: Vec<Role> = route.access.roles().iter().map(|one| role(*one)).collect();
            authority::authorise(rules, kind, held, &allowed, route.human_only)
                .map(Some)
                .map_err(|refusal| refusal.problem())
        }
    }
}

/// Whether a process started this way serves the route (PA §12.2).
pub fn serves<R: Rules>(rules: &R, route: &Route, start: StartMode) -> Result<(), Problem> {
    let gated = || {
        Problem::new(ProblemCode::RecoveryModeActive)
            .say("This process was started for recovery and does not serve the request.")
    };
    match route.start {
        Start::Any => Ok(()),
        Start::RecoveryStart => match start {
            StartMode::Recovery { .. } => Ok(()),
            StartMode::Normal => Err(Problem::conflict(
                "Only a process started for recovery takes an entry.",
            )),
        },
        Start::AfterEntry if start.serves(rules) => Ok(()),
        Start::Normal if start.serves(rules) && start.serves_plans() => Ok(()),
        Start::AfterEntry | Start::Normal => Err(gated()),
    }
}

/// 501: authenticated and role-checked, nothing done (PA §9.4).
pub fn implemented(route: &Route) -> Result<(), Problem> {
    if route.implemented {
        Ok(())
    } else {
        Err(Problem::new(ProblemCode::NotImplemented))
    }
}
