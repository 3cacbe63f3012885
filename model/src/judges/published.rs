//! What a release's machines showed when it was compiled (PA §6.1.1, §6.2).

use bronzeward_core::id::{MachineId, OperationId, ReleaseId};
use bronzeward_core::inventory::MachineIdentity;
use bronzeward_core::observation::{Observation, Purpose};
use bronzeward_core::release::Contract;

use super::case::{Case, SEEN};
use super::{Verdict, violation};
use crate::change::Change;

pub fn look(case: &Case<'_>) -> Verdict {
    let made = case.changes.iter().any(|change| match change {
        Change::Release(changed) => changed.before.is_none(),
        _ => false,
    });
    if !made {
        return Ok(());
    }
    for change in case.changes {
        if let Change::Operation(changed) = change
            && let Some(after) = &changed.after
            && let Some(release) = after.row.result_release
        {
            read(case, release, after.row.id)?;
        }
    }
    Ok(())
}

const READ: &str = "a release rests on its own readings";

fn read(case: &Case<'_>, release: ReleaseId, job: OperationId) -> Verdict {
    let Some(of) = case.tables.execution.releases.get(SEEN, &release) else {
        return violation(READ, format!("{release}: no such release"));
    };
    let contract = of.row.renderer.contract;
    let covered = case.tables.execution.release_machines.iter(SEEN);
    for ((_, machine), _) in covered.filter(|((of, _), _)| *of == release) {
        machine_read(case, *machine, job, contract)?;
    }
    Ok(())
}

fn machine_read(case: &Case<'_>, id: MachineId, job: OperationId, contract: Contract) -> Verdict {
    let said = |what: &str| format!("{id}: {what}");
    let Some(machine) = case.tables.authoring.machines.get(SEEN, &id) else {
        return violation(READ, said("no such machine"));
    };
    let recorded = MachineIdentity {
        key: machine.key.clone(),
        talos_cluster: machine.talos_cluster.clone(),
    };
    let all = case.tables.execution.observations.values(SEEN);
    let of_machine = all.filter(|seen| seen.started.machine == id);
    let mut readings: Vec<&Observation> = of_machine.collect();
    readings.sort_by_key(|seen| seen.started.basis);
    let own = readings.iter().rposition(|seen| {
        seen.started.purpose == Purpose::Publication && seen.started.operation == Some(job)
    });
    let Some(own) = own else {
        return violation(READ, said("it was not read"));
    };
    let seen = readings[own];
    if seen.started.endpoint != machine.endpoint {
        return violation(READ, said("at an address it has left"));
    }
    if !matches!(seen.identity_mismatch(&recorded), Ok(None)) {
        return violation(READ, said("another node"));
    }
    let minor = seen.values.running_version.value();
    if minor.is_none_or(|running| running.contract != contract) {
        return violation(READ, said("another minor"));
    }
    let otherwise = readings[own + 1..].iter().any(|later| {
        let minor = later.values.running_version.value();
        matches!(later.identity_mismatch(&recorded), Ok(Some(_)))
            || minor.is_some_and(|running| running.contract != contract)
    });
    match otherwise {
        true => violation(READ, said("read otherwise since")),
        false => Ok(()),
    }
}
