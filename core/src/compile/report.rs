//! Fills the report: which reference reached which leaf, who overrode it, and what would
//! be needed to compile again (IC §8.2, §9).
//!
//! Never in this module: a path that redaction has not gone over.

use crate::provenance::{Attribution, Pair};
use crate::resolve::{self, origin};
use crate::rules::Rules;

use super::records::{Fate, Record, Report, Reproduction};
use super::{Known, trace};

impl<R: Rules> Known<'_, R> {
    /// Until something is composed, no reference has an outcome.
    pub(super) fn report_sources(&self, report: &mut Report) {
        report.provenance = self.records(&|_| Fate::NotComposed);
        for occurrence in &self.resolution.occurrences {
            let origin = origin(occurrence.source);
            report.reproduction.push(Reproduction {
                version: occurrence.version.clone(),
                origin,
                source_digest: self.digest(origin),
                path: self.shown(&occurrence.path),
                position: occurrence.position,
            });
        }
    }

    pub(super) fn report_outcomes(
        &self,
        report: &mut Report,
        pairs: &[Pair],
        attribution: &Attribution,
        overrides: &trace::Overrides,
    ) {
        report.provenance = self.records(&|item| {
            let leaves = attribution.leaves.get(&item);
            match (leaves, overrides.get(&item)) {
                (Some(leaves), _) => {
                    let paths = leaves.iter().map(|leaf| self.shown(&pairs[*leaf].path));
                    Fate::Effective(paths.collect())
                }
                (None, Some(fragment)) => Fate::Overridden(*fragment),
                (None, None) => Fate::NotComposed,
            }
        });
        report.effective = attribution
            .leaves
            .keys()
            .map(|item| {
                let occurrence = self.resolution.items[*item].occurrence;
                self.resolution.occurrences[occurrence].version.clone()
            })
            .collect();
    }

    pub(super) fn records(&self, fate: &dyn Fn(usize) -> Fate) -> Vec<Record> {
        let record = |(index, item): (usize, &resolve::Item)| {
            let occurrence = &self.resolution.occurrences[item.occurrence];
            let origin = origin(occurrence.source);
            Record {
                version: occurrence.version.clone(),
                encoding: occurrence.encoding,
                member: item.member.as_ref().map(|(position, _)| *position),
                origin,
                source_digest: self.digest(origin),
                path: self.shown(&occurrence.path),
                position: occurrence.position,
                fate: fate(index),
                kind: occurrence.kind,
                members: occurrence.value.keys().len(),
            }
        };
        self.resolution
            .items
            .iter()
            .enumerate()
            .map(record)
            .collect()
    }
}
