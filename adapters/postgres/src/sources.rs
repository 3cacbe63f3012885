//! Heads, source revisions and references as they are read (PA §3.1, §3.2, IC §5.2).

use std::collections::{BTreeMap, BTreeSet};

use bronzeward_core::envelope::Kept;
use bronzeward_core::generation::GenerationPath;
use bronzeward_core::head::{AssignmentContent, Layer, Name, ProfileContent};
use bronzeward_core::id::{
    AssignmentRevisionId, ClusterId, FragmentRevisionId, HeadId, Id, ImportBaseRevisionId, Kind,
    ProfileRevisionId,
};
use bronzeward_core::path::{Format, Path};
use bronzeward_core::reference::{self, Declaration, Declarations, Encoding};
use bronzeward_core::secret;
use bronzeward_engine::ports::store::{
    AssignmentRevisionRow, FragmentRevisionRow, HeadKind, ImportBaseRow, Page, Paged,
    ProfileRevisionRow, ReferenceRow, SourceReads,
};
use bronzeward_engine::rows::{HeadRow, SourceRevisionId};
use diesel::prelude::*;

use crate::convert::{Out, digest, fault, id, signed, source_revision};
use crate::records::Head;
use crate::requests::digest_key;
use crate::schema::{
    assignment_fragment, assignment_profile, assignment_revision, fragment_revision, head,
    import_base_revision, profile_pin, profile_revision, reference_row,
};
use crate::store::{Access, PgRows};
use crate::time::Stamp;

#[derive(Queryable, Selectable)]
#[diesel(table_name = reference_row)]
struct Reference {
    revision_id: String,
    name: String,
    kind: String,
    version: i64,
    encoding: Option<String>,
    generation_path: String,
    keyed_digest: Vec<u8>,
    digest_key: String,
}

impl Reference {
    fn row(self) -> Out<ReferenceRow> {
        let encoding = self.encoding.as_deref();
        Ok(ReferenceRow {
            name: reference::Name::parse(&self.name).ok_or_else(fault)?,
            declaration: Declaration {
                kind: secret::Kind::parse(&self.kind).ok_or_else(fault)?,
                version: u64::try_from(self.version).map_err(|_| fault())?,
                encoding: encoding
                    .map(|text| Encoding::parse(text).ok_or_else(fault))
                    .transpose()?,
            },
            kept: Kept {
                generation: GenerationPath::parse(&self.generation_path).ok_or_else(fault)?,
                keyed_digest: digest(&self.keyed_digest)?,
                digest_key: digest_key(&self.digest_key)?,
            },
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = fragment_revision)]
struct Fragment {
    id: String,
    cluster_id: String,
    name: String,
    layer: String,
    document: String,
    embedded: serde_json::Value,
    author_id: String,
    author_role: String,
    created_at: Stamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = import_base_revision)]
struct ImportBase {
    id: String,
    cluster_id: String,
    machine_id: String,
    document: String,
    embedded: serde_json::Value,
    configuration_digest: Vec<u8>,
    author_id: String,
    author_role: String,
    created_at: Stamp,
}

/// Identifier, cluster, subject, author, role and time of a profile or assignment revision.
type RevisionRecord = (String, String, String, String, String, Stamp);

fn texts<K: Kind>(ids: &BTreeSet<Id<K>>) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn name(text: &str) -> Out<Name> {
    Name::parse(text).map_err(|_| fault())
}

fn layer(text: &str) -> Out<Layer> {
    Layer::parse(text).ok_or_else(fault)
}

fn embedded(json: &serde_json::Value) -> Out<BTreeMap<Path, Format>> {
    let items = json.as_array().ok_or_else(fault)?;
    items
        .iter()
        .map(|item| {
            let text = |member: &str| {
                let value = item.get(member);
                value.and_then(serde_json::Value::as_str).ok_or_else(fault)
            };
            let path = Path::parse(text("path")?).map_err(|_| fault())?;
            Ok((path, Format::parse(text("format")?).ok_or_else(fault)?))
        })
        .collect()
}

fn declared(references: Option<Vec<ReferenceRow>>, json: &serde_json::Value) -> Out<Declarations> {
    let references = references.unwrap_or_default();
    Ok(Declarations {
        references: references
            .into_iter()
            .map(|row| (row.name, row.declaration))
            .collect(),
        embedded: embedded(json)?,
    })
}

impl<M: Access> PgRows<M> {
    async fn references_by_revision(
        &mut self,
        revisions: Vec<String>,
    ) -> Out<BTreeMap<String, Vec<ReferenceRow>>> {
        let query = reference_row::table
            .filter(reference_row::revision_id.eq_any(revisions))
            .select(Reference::as_select());
        let rows: Vec<Reference> = self.load(query).await?;
        let mut found: BTreeMap<String, Vec<ReferenceRow>> = BTreeMap::new();
        for row in rows {
            let revision = row.revision_id.clone();
            found.entry(revision).or_default().push(row.row()?);
        }
        for rows in found.values_mut() {
            rows.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(found)
    }
}

impl<M: Access> SourceReads for PgRows<M> {
    async fn head(&mut self, of: HeadId) -> Out<Option<HeadRow>> {
        let query = head::table.find(of.to_string()).select(Head::as_select());
        let found: Option<Head> = self.optional(query).await?;
        found.map(HeadRow::try_from).transpose()
    }

    async fn heads(&mut self, kind: HeadKind, page: &Page<HeadId>) -> Out<Paged<HeadRow>> {
        use head::dsl;
        let mut query = dsl::head
            .filter(dsl::kind.eq(kind.as_str()))
            .select(Head::as_select())
            .into_boxed();
        if let Some(after) = page.after {
            query = query.filter(dsl::id.gt(after.to_string()));
        }
        let rows: Vec<Head> = self
            .load(query.order(dsl::id).limit(i64::from(page.limit) + 1))
            .await?;
        let rows = rows.into_iter().map(HeadRow::try_from);
        Ok(Paged::from_overfetched(
            rows.collect::<Out<Vec<_>>>()?,
            page.limit,
        ))
    }

    async fn heads_of(
        &mut self,
        cluster: ClusterId,
        kind: HeadKind,
        subjects: &BTreeSet<String>,
    ) -> Out<Vec<HeadRow>> {
        use head::dsl;
        let subjects: Vec<String> = subjects.iter().cloned().collect();
        let query = dsl::head
            .filter(dsl::kind.eq(kind.as_str()))
            .filter(dsl::cluster_id.eq(cluster.to_string()))
            .filter(dsl::subject.eq_any(subjects))
            .order(dsl::id)
            .select(Head::as_select());
        let rows: Vec<Head> = self.load(query).await?;
        rows.into_iter().map(HeadRow::try_from).collect()
    }

    async fn fragment_revisions(
        &mut self,
        ids: &BTreeSet<FragmentRevisionId>,
    ) -> Out<Vec<FragmentRevisionRow>> {
        use fragment_revision::dsl;
        let query = dsl::fragment_revision
            .filter(dsl::id.eq_any(texts(ids)))
            .order(dsl::id)
            .select(Fragment::as_select());
        let rows: Vec<Fragment> = self.load(query).await?;
        let mut references = self.references_by_revision(texts(ids)).await?;
        rows.into_iter()
            .map(|row| {
                Ok(FragmentRevisionRow {
                    declarations: declared(references.remove(&row.id), &row.embedded)?,
                    id: id(&row.id)?,
                    cluster: id(&row.cluster_id)?,
                    name: name(&row.name)?,
                    layer: layer(&row.layer)?,
                    document: row.document,
                    author: signed(&row.author_id, &row.author_role)?,
                    created_at: row.created_at.0,
                })
            })
            .collect()
    }

    async fn import_base(&mut self, of: ImportBaseRevisionId) -> Out<Option<ImportBaseRow>> {
        let query = import_base_revision::table
            .find(of.to_string())
            .select(ImportBase::as_select());
        let found: Option<ImportBase> = self.optional(query).await?;
        let Some(row) = found else { return Ok(None) };
        let mut references = self.references_by_revision(vec![row.id.clone()]).await?;
        Ok(Some(ImportBaseRow {
            declarations: declared(references.remove(&row.id), &row.embedded)?,
            id: of,
            cluster: id(&row.cluster_id)?,
            machine: id(&row.machine_id)?,
            document: row.document,
            configuration_digest: digest(&row.configuration_digest)?,
            author: signed(&row.author_id, &row.author_role)?,
            created_at: row.created_at.0,
        }))
    }

    async fn profile_revisions(
        &mut self,
        ids: &BTreeSet<ProfileRevisionId>,
    ) -> Out<Vec<ProfileRevisionRow>> {
        use profile_revision::dsl;
        let query = dsl::profile_revision
            .filter(dsl::id.eq_any(texts(ids)))
            .order(dsl::id)
            .select((
                dsl::id,
                dsl::cluster_id,
                dsl::name,
                dsl::author_id,
                dsl::author_role,
                dsl::created_at,
            ));
        let rows: Vec<RevisionRecord> = self.load(query).await?;
        let query = profile_pin::table
            .filter(profile_pin::profile_revision_id.eq_any(texts(ids)))
            .order(profile_pin::position)
            .select((
                profile_pin::profile_revision_id,
                profile_pin::fragment_revision_id,
            ));
        let pins: Vec<(String, String)> = self.load(query).await?;
        rows.into_iter()
            .map(|(revision, cluster, subject, author, role, at)| {
                let own = pins.iter().filter(|(of, _)| *of == revision);
                let fragments = own.map(|(_, pin)| id(pin)).collect::<Out<Vec<_>>>()?;
                Ok(ProfileRevisionRow {
                    id: id(&revision)?,
                    cluster: id(&cluster)?,
                    name: name(&subject)?,
                    content: ProfileContent { fragments },
                    author: signed(&author, &role)?,
                    created_at: at.0,
                })
            })
            .collect()
    }

    async fn assignment_revisions(
        &mut self,
        ids: &BTreeSet<AssignmentRevisionId>,
    ) -> Out<Vec<AssignmentRevisionRow>> {
        use assignment_revision::dsl;
        let query = dsl::assignment_revision
            .filter(dsl::id.eq_any(texts(ids)))
            .order(dsl::id)
            .select((
                dsl::id,
                dsl::cluster_id,
                dsl::machine_id,
                dsl::author_id,
                dsl::author_role,
                dsl::created_at,
            ));
        let rows: Vec<RevisionRecord> = self.load(query).await?;
        let query = assignment_profile::table
            .filter(assignment_profile::assignment_revision_id.eq_any(texts(ids)))
            .order(assignment_profile::position)
            .select((
                assignment_profile::assignment_revision_id,
                assignment_profile::name,
            ));
        let profiles: Vec<(String, String)> = self.load(query).await?;
        let query = assignment_fragment::table
            .filter(assignment_fragment::assignment_revision_id.eq_any(texts(ids)))
            .order(assignment_fragment::position)
            .select((
                assignment_fragment::assignment_revision_id,
                assignment_fragment::layer,
                assignment_fragment::name,
            ));
        let fragments: Vec<(String, String, String)> = self.load(query).await?;
        rows.into_iter()
            .map(|(revision, cluster, machine, author, role, at)| {
                let mut content = AssignmentContent::default();
                for (_, selected) in profiles.iter().filter(|(of, _)| *of == revision) {
                    content.profiles.push(name(selected)?);
                }
                for (_, of, selected) in fragments.iter().filter(|(of, ..)| *of == revision) {
                    let in_layer = content.fragments.entry(layer(of)?).or_default();
                    in_layer.push(name(selected)?);
                }
                Ok(AssignmentRevisionRow {
                    id: id(&revision)?,
                    cluster: id(&cluster)?,
                    machine: id(&machine)?,
                    content,
                    author: signed(&author, &role)?,
                    created_at: at.0,
                })
            })
            .collect()
    }

    async fn revisions_of(
        &mut self,
        of: &HeadRow,
        after: Option<SourceRevisionId>,
        limit: u16,
    ) -> Out<Paged<SourceRevisionId>> {
        let after = after.map(|after| after.to_string()).unwrap_or_default();
        let most = i64::from(limit) + 1;
        let cluster = of.cluster.to_string();
        let subject = of.subject.clone();
        let rows: Vec<String> = match of.id {
            HeadId::Fragment(_) => {
                use fragment_revision::dsl;
                let query = dsl::fragment_revision
                    .filter(dsl::cluster_id.eq(cluster).and(dsl::name.eq(subject)))
                    .filter(dsl::id.gt(after))
                    .order(dsl::id);
                self.load(query.limit(most).select(dsl::id)).await?
            }
            HeadId::Profile(_) => {
                use profile_revision::dsl;
                let query = dsl::profile_revision
                    .filter(dsl::cluster_id.eq(cluster).and(dsl::name.eq(subject)))
                    .filter(dsl::id.gt(after))
                    .order(dsl::id);
                self.load(query.limit(most).select(dsl::id)).await?
            }
            HeadId::Assignment(_) => {
                use assignment_revision::dsl;
                let query = dsl::assignment_revision
                    .filter(dsl::machine_id.eq(subject))
                    .filter(dsl::id.gt(after))
                    .order(dsl::id);
                self.load(query.limit(most).select(dsl::id)).await?
            }
        };
        let rows = rows.iter().map(|row| source_revision(row));
        Ok(Paged::from_overfetched(
            rows.collect::<Out<Vec<_>>>()?,
            limit,
        ))
    }

    async fn references(&mut self, revision: SourceRevisionId) -> Out<Vec<ReferenceRow>> {
        let revision = revision.to_string();
        let mut found = self.references_by_revision(vec![revision.clone()]).await?;
        Ok(found.remove(&revision).unwrap_or_default())
    }

    async fn references_named(
        &mut self,
        cluster: ClusterId,
        names: &BTreeSet<reference::Name>,
    ) -> Out<Vec<ReferenceRow>> {
        use reference_row::dsl;
        let names: Vec<String> = names.iter().map(|name| name.as_str().to_owned()).collect();
        let query = dsl::reference_row
            .filter(dsl::cluster_id.eq(cluster.to_string()))
            .filter(dsl::name.eq_any(names))
            .select(Reference::as_select());
        let rows: Vec<Reference> = self.load(query).await?;
        rows.into_iter().map(Reference::row).collect()
    }
}
