//! The acts that take authority back or give an operation up, one function each, over the
//! engine's own.
//!
//! Called by the people of a world and by witnesses. Never in this module: which act is due.

use bronzeward_core::id::{ApprovalId, MachineId, OperationId, PlanId};
use bronzeward_core::principal::Role;
use bronzeward_engine::ports::{Notifier, Wake};

use super::acts::{APPROVERS, RECOVERY, normally, route};
use super::hand::{Ended, Hand, requests, said};

const REVOKERS: &[Role] = &[Role::Approver, Role::RecoveryAdmin];
const CANCELLERS: &[Role] = &[Role::Publisher, Role::Approver, Role::RecoveryAdmin];
const FREEZERS: &[Role] = &[
    Role::Author,
    Role::Publisher,
    Role::Approver,
    Role::RecoveryAdmin,
];

/// What every such act gives as its reason.
const REASON: &str = "asked for";

impl Hand {
    pub async fn revoke_approval(&self, approval: ApprovalId) -> Ended {
        self.ask(
            route("revoke approval", REVOKERS, false),
            &format!("{approval}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .revoke_approval(&admitted, approval, REASON, |row| said(row.approval))
                        .await
                })
            },
        )
        .await
    }

    pub async fn cancel(&self, plan: PlanId) -> Ended {
        let held = self.person.roles();
        self.ask(
            route("cancel plan", CANCELLERS, false),
            &format!("{plan}"),
            move |server, admitted| {
                let held = held.clone();
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .cancel_plan(&admitted, plan, &held, REASON, |row| said(row.plan))
                        .await
                })
            },
        )
        .await
    }

    pub async fn freeze(&self, machine: MachineId) -> Ended {
        self.ask(
            route("freeze", FREEZERS, false),
            &format!("{machine}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    asked
                        .freeze_machine(&admitted, machine, Some(REASON), |row| {
                            said(row.fact.machine)
                        })
                        .await
                })
            },
        )
        .await
    }

    pub async fn unfreeze(&self, machine: MachineId) -> Ended {
        self.ask(
            normally(route("unfreeze", APPROVERS, false)),
            &format!("{machine}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    let opened = asked
                        .unfreeze_machine(&admitted, machine, REASON, |row| said(row.fact.machine));
                    let answer = opened.await?;
                    server.notifier.wake(Wake::Dispatch);
                    Ok(answer)
                })
            },
        )
        .await
    }

    pub async fn resolve(&self, operation: OperationId) -> Ended {
        self.ask(
            route("resolve operation", RECOVERY, true),
            &format!("{operation}"),
            move |server, admitted| {
                Box::pin(async move {
                    let asked = requests(&server);
                    let resolved = asked.resolve_operation(&admitted, operation, REASON, |row| {
                        said(row.operation.id)
                    });
                    let answer = resolved.await?;
                    server.notifier.wake(Wake::Dispatch);
                    Ok(answer)
                })
            },
        )
        .await
    }
}
