//! One authenticated and authorised request, as a handler sees it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bronzeward_api::routes::Route;
use bronzeward_api::{Checked, Json};
use bronzeward_core::id::{Id, Kind, RequestId};
use bronzeward_core::idempotency::Fingerprint;
use bronzeward_core::principal::{Actor, Role};
use bronzeward_core::problem::Problem;
use bronzeward_core::revision::Etag;
use bronzeward_core::secret::Plaintext;
use bronzeward_engine::authenticate::Authenticated;
use bronzeward_engine::fingerprints::Fingerprints;
use bronzeward_engine::ports::store::{Page, Paged, Snapshot, Store, StoreError};
use bronzeward_engine::request::{Admitted, Answer, EpochRead, Refused, Rendered, Requests};
use bronzeward_engine::world::{RawSnapshot, World};
use http::header::{CONTENT_TYPE, ETAG, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::EpochReads;
use crate::app::App;
use crate::fingerprint::FingerprintInput;
use crate::headers::{self, WriteHeaders};
use crate::query::{self, Query};
use crate::{body, cursor};

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What computes a keyed route's fingerprint, and the text it computes it over.
type Keyed<'a, W> = (Fingerprints<'a, W>, [Plaintext; 1]);

/// What a handler returns.
pub type Handled = Result<Response, Refused>;

/// A request whose credential and role were accepted.
pub struct Call<'a, W: World> {
    pub app: &'a App<W>,
    pub route: &'static Route,
    pub who: Authenticated,
    pub query: Query,
    role: Option<Role>,
    params: BTreeMap<String, String>,
    headers: HeaderMap,
    /// Behind a lock only so that a reference to the call may cross an await.
    body: Mutex<Body>,
    request: RequestId,
    reads: EpochReads,
}

/// A write that passed every check that needs no transaction.
pub struct Write<T> {
    pub admitted: Admitted,
    pub body: T,
    /// The one ETag an If-Match named; none matches nothing.
    pub if_match: Option<Etag>,
}

impl<'a, W: World> Call<'a, W> {
    pub(crate) fn new(
        app: &'a App<W>,
        route: &'static Route,
        params: BTreeMap<String, String>,
        who: Authenticated,
        role: Option<Role>,
        parts: Parts,
        body: Body,
    ) -> Result<Self, Problem> {
        let query = query::read(route, parts.uri.query())?;
        Ok(Self {
            app,
            route,
            who,
            query,
            role,
            params,
            request: parts
                .extensions
                .get()
                .copied()
                .unwrap_or_else(|| RequestId::from_bits(0)),
            reads: parts.extensions.get().cloned().unwrap_or_default(),
            headers: parts.headers,
            body: Mutex::new(body),
        })
    }

    pub fn request(&self) -> RequestId {
        self.request
    }

    pub fn requests(&self) -> Requests<'a, W> {
        Requests { db: &self.app.db }
    }

    /// A path parameter that names a record; a malformed one is as unknown as a missing one.
    pub fn id<K: Kind>(&self, name: &str) -> Result<Id<K>, Refused> {
        let text = self.text(name);
        Id::parse(text).map_err(|_| Problem::not_found("No such resource.").into())
    }

    pub fn text(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// A snapshot for a read, and the installation state it shows, which the answer reports.
    pub async fn read(&self) -> Result<(RawSnapshot<W>, EpochRead), Refused> {
        use bronzeward_engine::ports::store::RequestReads;
        let mut snapshot = self.app.db.store().snapshot().await.map_err(unreadable)?;
        let read = EpochRead::from(&snapshot.installation().await.map_err(unreadable)?);
        self.reads.report(read);
        Ok((snapshot, read))
    }

    fn take_body(&mut self) -> Body {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(body, Body::empty())
    }

    /// Accepts a write: headers, body, fingerprint, principal, in this order.
    pub async fn write<T>(&mut self) -> Result<Write<T>, Refused>
    where
        T: DeserializeOwned + Checked,
    {
        let written = headers::write(self.route, &self.headers)?;
        let sent = self.take_body();
        let json = body::read(&self.headers, sent).await?;
        let typed = body::typed(&json)?;
        self.admit(written, Some(&json), typed).await
    }

    /// Accepts a write that takes no body.
    pub async fn write_bare(&mut self) -> Result<Write<()>, Refused> {
        let written = headers::write(self.route, &self.headers)?;
        body::none(self.take_body()).await?;
        self.admit(written, None, ()).await
    }

    async fn admit<T>(
        &self,
        written: WriteHeaders,
        json: Option<&Json>,
        body: T,
    ) -> Result<Write<T>, Refused> {
        let params = self
            .params
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let if_match = written.if_match.as_ref();
        let input = FingerprintInput::new(
            self.route,
            &params,
            if_match.map(|one| one.text.as_str()),
            json,
        )?;
        let (fingerprint, keyed) = self.fingerprint(input).await?;
        let principal = self.app.authenticator().principal(&self.who).await?;
        let recomputed = match keyed {
            None => None,
            Some((fingerprints, text)) => {
                fingerprints
                    .under_the_record(principal, &written.key, &fingerprint, &text)
                    .await?
            }
        };
        let role = self
            .role
            .ok_or_else(|| Problem::internal("A write without a role."))?;
        Ok(Write {
            admitted: Admitted {
                actor: Actor {
                    principal,
                    role,
                    kind: self.who.kind,
                },
                key: written.key,
                fingerprint,
                recomputed,
                expected_epoch: written.expected_epoch,
                request: self.request,
                method: self.route.method.as_str(),
                route: self.route.path,
            },
            body,
            if_match: written.if_match.and_then(|one| one.etag),
        })
    }

    /// The fingerprint; a keyed route's is the provider's HMAC, and what computed it is kept
    /// until the key's record has been looked for.
    async fn fingerprint(
        &self,
        input: FingerprintInput,
    ) -> Result<(Fingerprint, Option<Keyed<'_, W>>), Refused> {
        if let Some(fingerprint) = input.unkeyed() {
            return Ok((fingerprint, None));
        }
        let unavailable = || Problem::dependency_unavailable("The provider is not available.");
        let ingestion = self.app.ingestion.as_deref().ok_or_else(unavailable)?;
        let fingerprints = Fingerprints {
            db: &self.app.db,
            ingestion,
        };
        // Canonical JSON is UTF-8.
        let text = String::from_utf8(input.into_bytes()).map_err(|_| unavailable())?;
        let text = [Plaintext::new(text)];
        let fingerprint = fingerprints.compute(&text).await?;
        Ok((fingerprint, Some((fingerprints, text))))
    }

    /// Answers a write from what its transaction rendered, now or earlier.
    pub fn answer(&self, answer: Answer) -> Response {
        self.reads.report(answer.read);
        let Rendered {
            status,
            location,
            etag,
            body,
            operation: _,
        } = answer.rendered;
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let json = if status.is_success() {
            "application/json"
        } else {
            "application/problem+json"
        };
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(json));
        set(headers, LOCATION, location.as_deref());
        set(headers, ETAG, etag.as_deref());
        if answer.replayed {
            headers.insert(REPLAYED, HeaderValue::from_static("true"));
        }
        response
    }

    /// The page a list asks for. `collection` names the list and its parent.
    pub fn page<K: Kind>(&self, scope: &cursor::Scope) -> Result<Page<Id<K>>, Refused> {
        let after = match &self.query.cursor {
            None => None,
            Some(text) => {
                let position = cursor::decode(&self.app.cursor_key, scope, text)?;
                Some(Id::parse(&position).map_err(|_| query::cursor_invalid())?)
            }
        };
        Ok(Page {
            after,
            limit: self.query.limit,
        })
    }

    /// The scope of this list's cursors: the route, its parent, its filters and the epoch.
    pub fn scope(&self, read: EpochRead, descending: bool) -> cursor::Scope {
        let parent: Vec<&str> = self.params.values().map(String::as_str).collect();
        let collection = format!("{} {}", self.route.path, parent.join("/"));
        // The direction is the scope's own; the word that asked for it is no filter.
        let filters = self.query.filters().filter(|(name, _)| *name != "order");
        cursor::Scope::new(collection, filters, descending, read.epoch)
    }

    /// A page's answer; `position` is an item's place in the order.
    pub fn paged<T, U: Serialize>(
        &self,
        scope: &cursor::Scope,
        paged: Paged<T>,
        position: impl Fn(&T) -> String,
        wire: impl Fn(T) -> U,
    ) -> Response {
        let next = paged
            .items
            .last()
            .filter(|_| paged.more)
            .map(|last| cursor::encode(&self.app.cursor_key, scope, position(last)));
        ok(&bronzeward_api::bodies::common::Page {
            items: paged.items.into_iter().map(wire).collect(),
            next,
        })
    }
}

/// 503 for a read that failed.
pub fn unreadable(_: StoreError) -> Refused {
    Problem::dependency_unavailable("The database could not be read.").into()
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<&str>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
        headers.insert(name, value);
    }
}

/// 200 with a body.
pub fn ok<T: Serialize>(body: &T) -> Response {
    let mut response = (StatusCode::OK, text(body)).into_response();
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// 200 with a body and its ETag.
pub fn ok_with_etag<T: Serialize>(body: &T, etag: Etag) -> Response {
    let mut response = ok(body);
    set(response.headers_mut(), ETAG, Some(&quoted(etag)));
    response
}

/// An ETag header's text. `Etag` prints with its quotes.
pub fn quoted(etag: Etag) -> String {
    etag.to_string()
}

/// A body's JSON text. Wire bodies are maps, lists and texts: they always serialise.
pub fn text<T: Serialize>(body: &T) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

/// An answer to be stored and replayed.
pub fn rendered<T: Serialize>(status: StatusCode, body: &T) -> Rendered {
    Rendered {
        status: status.as_u16(),
        location: None,
        etag: None,
        body: text(body),
        operation: None,
    }
}

/// 201 with a Location.
pub fn created<T: Serialize>(location: String, body: &T) -> Rendered {
    Rendered {
        location: Some(location),
        ..rendered(StatusCode::CREATED, body)
    }
}

/// 404 for a record that a path names.
pub fn missing() -> Refused {
    Problem::not_found("No such resource.").into()
}

/// Closes a snapshot and gives what was read of it.
pub async fn closing<S: Snapshot, T>(
    snapshot: S,
    read: Result<T, StoreError>,
) -> Result<T, Refused> {
    snapshot.close().await;
    read.map_err(unreadable)
}
