//! What operators and accidents do to the provider, and what judges may look at.
//!
//! Never in this module: what a call does.

use std::collections::BTreeMap;

use bronzeward_core::generation::GenerationPath;
use bronzeward_core::secret::Value;
use bronzeward_core::time::DbTime;

use super::super::super::times;
use super::{Contents, Data, Identity, Key, KeyState, KeyVersion, KvPath, Vault, Version};

impl Vault {
    /// Writes a version, and answers its creation time.
    pub fn write(&mut self, path: KvPath, data: Data, now: DbTime) -> String {
        let created = times::created(now, self.next());
        self.written.insert(path);
        let secret = self.contents.secrets.entry(path).or_default();
        secret.current += 1;
        let version = Version {
            created: created.clone(),
            deletion: None,
            destroyed: false,
            data,
        };
        secret.versions.insert(secret.current, version);
        created
    }

    fn version(&mut self, path: KvPath, version: u64) -> Option<&mut Version> {
        self.contents
            .secrets
            .get_mut(&path)?
            .versions
            .get_mut(&version)
    }

    /// Soft-deletes a version now or at a time to come; `None` undeletes it.
    pub fn set_deletion(&mut self, path: KvPath, version: u64, at: Option<DbTime>) {
        if let Some(version) = self.version(path, version) {
            version.deletion = at;
        }
    }

    pub fn destroy(&mut self, path: KvPath, version: u64) {
        if let Some(version) = self.version(path, version) {
            version.destroyed = true;
            version.data = Data::Foreign;
        }
    }

    /// Deletes a path whole: its numbers are given again from 1.
    pub fn delete_metadata(&mut self, path: KvPath) {
        self.contents.secrets.remove(&path);
    }

    pub fn generations(&self) -> impl Iterator<Item = GenerationPath> + '_ {
        self.contents.secrets.keys().filter_map(|path| match path {
            KvPath::Generation(path) => Some(*path),
            KvPath::Access(_) => None,
        })
    }

    /// What a version holds, whatever became of it: for judges.
    pub fn holds(&self, path: GenerationPath, version: u64) -> Option<&Value> {
        let secret = self.contents.secrets.get(&KvPath::Generation(path))?;
        match &secret.versions.get(&version)?.data {
            Data::Generation(value) => Some(value),
            Data::Talosconfig(_) | Data::Foreign => None,
        }
    }

    /// Makes a key that is not there.
    pub fn make_key(&mut self, key: Key, now: DbTime) {
        let material = self.next();
        let created = now.as_seconds();
        self.contents.keys.entry(key).or_insert_with(|| KeyState {
            versions: BTreeMap::from([(1, KeyVersion { created, material })]),
            available_from: 0,
            decrypts_from: 1,
            soft_deleted: false,
        });
    }

    pub fn delete_key(&mut self, key: Key) {
        self.contents.keys.remove(&key);
    }

    pub fn rotate(&mut self, key: Key, now: DbTime) {
        let material = self.next();
        let created = now.as_seconds();
        if let Some(state) = self.contents.keys.get_mut(&key) {
            let next = state.versions.keys().next_back().map_or(1, |last| last + 1);
            let version = KeyVersion { created, material };
            state.versions.insert(next, version);
        }
    }

    pub fn set_decryption_floor(&mut self, key: Key, floor: u64) {
        if let Some(state) = self.contents.keys.get_mut(&key) {
            state.decrypts_from = floor;
        }
    }

    /// Takes versions below a floor away for good.
    pub fn trim(&mut self, key: Key, floor: u64) {
        if let Some(state) = self.contents.keys.get_mut(&key) {
            state.available_from = floor;
            state.decrypts_from = state.decrypts_from.max(floor);
            state.versions.retain(|number, _| *number >= floor);
        }
    }

    pub fn soft_delete_key(&mut self, key: Key, deleted: bool) {
        if let Some(state) = self.contents.keys.get_mut(&key) {
            state.soft_deleted = deleted;
        }
    }

    pub fn seal(&mut self, until: DbTime) {
        self.sealed_until = Some(until);
    }

    pub fn deny(&mut self, identity: Identity, until: DbTime) {
        self.denied_until.insert(identity, until);
    }

    pub fn snapshot(&self) -> Contents {
        self.contents.clone()
    }

    /// Everything since the snapshot is gone: secrets, versions, rotations.
    pub fn restore(&mut self, contents: Contents) {
        self.contents = contents;
    }

    /// Ends what an operator can end: seals, denials, soft deletions, floors.
    pub fn heal(&mut self) {
        self.sealed_until = None;
        self.denied_until.clear();
        for secret in self.contents.secrets.values_mut() {
            for version in secret.versions.values_mut() {
                version.deletion = None;
            }
        }
        for state in self.contents.keys.values_mut() {
            state.soft_deleted = false;
            state.decrypts_from = state.available_from.max(1);
        }
    }
}
