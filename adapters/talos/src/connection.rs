//! One HTTP/2 connection, the calls it lets through, and whose status a call ended with.
//!
//! Both clients make their generated clients over a [`Connection`]. It is a tower service
//! of ours rather than a channel of tonic's, for three reasons: it never dials again, so a
//! request cannot be sent twice; it refuses every path outside its list, whatever a
//! generated client would call; and it sees the status that the node itself sent, which
//! tonic does not keep apart from the ones it makes (EaR 3.5 does). No keep-alive pings
//! are sent (T22), and no header of Talos's routing.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bronzeward_core::inventory::Endpoint;
use bronzeward_engine::ports::node::NodeCode;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tonic::codegen::http::{HeaderMap, Request, Response, Uri};
use tonic::{Code, Status};
use tower::Service;

/// What the read-only client may call (EaR 3.5).
pub const READ_CALLS: &[&str] = &[
    "/machine.MachineService/Version",
    "/cosi.resource.State/Get",
];

/// What the mutating client may call.
pub const WRITE_CALLS: &[&str] = &["/machine.MachineService/ApplyConfiguration"];

/// Talos's own cap on a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// A refusal in immediate mode carries a diff in its status: with less room than Go's
/// client has, the connection would fail instead of answering.
const MAX_HEADER_BYTES: u32 = 16 << 20;

/// The status that the node sent with the call in progress; `None` until it has sent one.
type Seen = Arc<Mutex<Option<i32>>>;

#[derive(Clone)]
pub struct Connection {
    sender: SendRequest<tonic::body::Body>,
    allowed: &'static [&'static str],
    origin: Uri,
    seen: Seen,
}

impl Connection {
    /// Speaks HTTP/2 over a dialled stream; the connection ends when the last clone drops.
    pub async fn open(
        stream: TlsStream<TcpStream>,
        endpoint: Endpoint,
        allowed: &'static [&'static str],
    ) -> Result<Self, NodeCode> {
        let authority = match endpoint.address {
            IpAddr::V4(address) => format!("{address}:{}", endpoint.port),
            IpAddr::V6(address) => format!("[{address}]:{}", endpoint.port),
        };
        let origin = Uri::builder()
            .scheme("https")
            .authority(authority)
            .path_and_query("/")
            .build()
            .map_err(|_| NodeCode::DIAL_FAILED)?;
        let (sender, driver) = Builder::new(TokioExecutor::new())
            .max_header_list_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| NodeCode::CONNECTION_LOST)?;
        // The driver ends with the connection; its error is known to the calls on it.
        tokio::spawn(async move {
            let _ended = driver.await;
        });
        Ok(Self {
            sender,
            allowed,
            origin,
            seen: Seen::default(),
        })
    }

    pub fn origin(&self) -> Uri {
        self.origin.clone()
    }

    /// Sorts the result of the call just made on this connection.
    pub fn outcome<T>(&self, result: Result<tonic::Response<T>, Status>) -> Outcome<T> {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(answer) if seen == Some(Code::Ok as i32) => Outcome::Answer(answer.into_inner()),
            Ok(_) => Outcome::Ours(NodeCode::MALFORMED),
            Err(status) => match seen {
                Some(code) if code == status.code() as i32 && code != Code::Ok as i32 => {
                    Outcome::Refusal(Refusal { code, status })
                }
                Some(_) => Outcome::Ours(NodeCode::MALFORMED),
                None => Outcome::Ours(NodeCode::CONNECTION_LOST),
            },
        }
    }
}

/// How a call ended.
pub enum Outcome<T> {
    Answer(T),
    /// The node sent this status.
    Refusal(Refusal),
    /// The node sent none; ours.
    Ours(NodeCode),
}

/// A status that the node sent. Its text is for `classify` alone and is not shown.
pub struct Refusal {
    pub code: i32,
    status: Status,
}

impl Refusal {
    pub fn text(&self) -> &str {
        self.status.message()
    }
}

impl Service<Request<tonic::body::Body>> for Connection {
    type Response = Response<Watched>;
    type Error = Refused;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Refused>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refused>> {
        self.sender.poll_ready(context).map_err(|_| Refused)
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if !self.allowed.contains(&request.uri().path()) {
            return Box::pin(async { Err(Refused) });
        }
        let seen = Arc::clone(&self.seen);
        let answer = self.sender.send_request(request);
        Box::pin(async move {
            let answer = answer.await.map_err(|_| Refused)?;
            // A refusal without a body carries its status here; any other in its trailers.
            note(&seen, answer.headers());
            Ok(answer.map(|body| Watched { body, seen }))
        })
    }
}

fn note(seen: &Seen, headers: &HeaderMap) {
    let status = headers.get("grpc-status");
    let number = status
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok());
    if let Some(number) = number {
        *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
    }
}

/// The request was not sent, or its connection ended. Why is not kept: the text is hyper's.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the node failed")]
pub struct Refused;

/// An answer's body that notes the status in its trailers.
pub struct Watched {
    body: Incoming,
    seen: Seen,
}

impl Body for Watched {
    type Data = Bytes;
    type Error = Refused;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Refused>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(_)) => return Poll::Ready(Some(Err(Refused))),
            None => return Poll::Ready(None),
        };
        if let Some(trailers) = frame.trailers_ref() {
            note(&self.seen, trailers);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
