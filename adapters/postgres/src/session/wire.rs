//! What the server said last on a connection: its error's SQLSTATE, its command tag, its
//! transaction status.
//!
//! The libraries above drop all three: diesel-async reports a deadlock as unknown, and
//! tokio-postgres answers a COMMIT that was a ROLLBACK with success. The bytes pass through
//! here on their way up, and the message headers are read. Called by [`super::connect`]
//! only. Never in here: a message's text or a row, which are passed on unread.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An error's own report holds at most a few hundred bytes of fields that are read here;
/// a longer one is read up to this and passed on whole.
const KEPT_BYTES: usize = 16 * 1024;
const HEADER: usize = 5;

/// The server's transaction status, from its latest ReadyForQuery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// None has come since the latest command was sent.
    #[default]
    Unknown,
    Idle,
    InTransaction,
    /// In a transaction that failed: the server will answer COMMIT with ROLLBACK.
    Failed,
}

/// An ErrorResponse without its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    /// SQLSTATE, five characters.
    pub code: String,
    /// FATAL or PANIC: the session is ending, and a COMMIT may have taken effect.
    pub fatal: bool,
    /// The constraint, index or trigger that refused.
    pub constraint: Option<String>,
}

/// Shared by the stream, which writes it, and the session, which reads it.
#[derive(Clone, Debug, Default)]
pub struct Wire(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    error: Option<ServerError>,
    tag: Option<String>,
    status: Status,
    closed: bool,
}

impl Wire {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(|held| held.into_inner())
    }

    /// Forgets the last command's answer, before the next one is sent. A FATAL error stays:
    /// the server says it once, often while nothing is under way.
    pub fn expect_answer(&self) {
        let mut seen = self.seen();
        if !seen.error.as_ref().is_some_and(|error| error.fatal) {
            seen.error = None;
        }
        seen.tag = None;
    }

    pub fn error(&self) -> Option<ServerError> {
        self.seen().error.clone()
    }

    /// The tag of the latest completed command, as COMMIT or ROLLBACK.
    pub fn tag(&self) -> Option<String> {
        self.seen().tag.clone()
    }

    /// Whether the connection can serve another transaction.
    pub fn idle(&self) -> bool {
        let seen = self.seen();
        seen.status == Status::Idle && !seen.closed
    }

    pub(super) fn close(&self) {
        self.seen().closed = true;
    }

    fn message(&self, kind: u8, body: &[u8]) {
        let mut seen = self.seen();
        match kind {
            b'E' => seen.error = Some(server_error(body)),
            b'C' => seen.tag = Some(text(body.strip_suffix(&[0]).unwrap_or(body))),
            b'Z' => {
                seen.status = match body.first() {
                    Some(b'I') => Status::Idle,
                    Some(b'T') => Status::InTransaction,
                    Some(b'E') => Status::Failed,
                    _ => Status::Unknown,
                }
            }
            _ => {}
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Fields are a type byte and a zero-terminated value each.
fn server_error(body: &[u8]) -> ServerError {
    let mut error = ServerError {
        code: String::new(),
        fatal: true,
        constraint: None,
    };
    for field in body.split(|byte| *byte == 0) {
        match field.split_first() {
            Some((b'C', value)) => error.code = text(value),
            // `V` is the severity in English whatever the server's language is.
            Some((b'V', value)) => error.fatal = value != b"ERROR",
            Some((b'n', value)) => error.constraint = Some(text(value)),
            _ => {}
        }
    }
    error
}

/// A stream of a connection whose server messages are noted in a [`Wire`].
pub struct Watched<S> {
    inner: S,
    wire: Wire,
    header: Vec<u8>,
    body: Vec<u8>,
    left: usize,
}

impl<S> Watched<S> {
    pub fn new(inner: S, wire: Wire) -> Self {
        Self {
            inner,
            wire,
            header: Vec::with_capacity(HEADER),
            body: Vec::new(),
            left: 0,
        }
    }

    fn note(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.header.len() < HEADER {
                let (head, rest) = bytes.split_at(bytes.len().min(HEADER - self.header.len()));
                self.header.extend_from_slice(head);
                bytes = rest;
                if self.header.len() < HEADER {
                    return;
                }
                // The length counts itself and not the type byte.
                let length = self.header[1..]
                    .iter()
                    .fold(0, |n, b| n << 8 | usize::from(*b));
                self.left = length.saturating_sub(4);
            }
            let (part, rest) = bytes.split_at(bytes.len().min(self.left));
            bytes = rest;
            self.left -= part.len();
            if matches!(self.header[0], b'E' | b'C' | b'Z') {
                let room = KEPT_BYTES.saturating_sub(self.body.len());
                self.body.extend_from_slice(&part[..part.len().min(room)]);
            }
            if self.left == 0 {
                self.wire.message(self.header[0], &self.body);
                self.header.clear();
                self.body.clear();
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        this.note(&buf.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn check(chunk: usize) {
        let wire = Wire::default();
        let mut watched = Watched::new((), wire.clone());
        let bytes = [
            message(b'D', &[7; 40_000]),
            message(b'E', b"SERROR\0VERROR\0C40P01\0Mtext\0nsome_key\0\0"),
            message(b'1', b""),
            message(b'C', b"ROLLBACK\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        for part in bytes.chunks(chunk) {
            watched.note(part);
        }
        let error = wire.error().expect("an error passed");
        assert_eq!(error.code, "40P01");
        assert!(!error.fatal);
        assert_eq!(error.constraint.as_deref(), Some("some_key"));
        assert_eq!(wire.tag().as_deref(), Some("ROLLBACK"));
        assert!(wire.idle());
    }

    #[test]
    fn messages_are_read_however_the_stream_cuts_them() {
        for chunk in [1, 2, 3, 5, 7, 4096, 100_000] {
            check(chunk);
        }
    }

    #[test]
    fn a_fatal_error_outlives_the_next_command() {
        let wire = Wire::default();
        let mut watched = Watched::new((), wire.clone());
        watched.note(&message(b'E', b"SFATAL\0VFATAL\0C57P01\0\0"));
        wire.expect_answer();
        assert!(wire.error().is_some_and(|error| error.fatal));
    }
}
