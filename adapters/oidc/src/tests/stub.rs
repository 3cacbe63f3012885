//! An HTTP server that answers from a table and counts: the faults of a provider that
//! the real one cannot be asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const DISCOVERY: &str = "/.well-known/openid-configuration";

/// Status, Location if any, body.
type Answer = (u16, Option<String>, String);

#[derive(Clone, Default)]
struct Table {
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

pub(super) struct Stub {
    /// `http://127.0.0.1:<port>`.
    pub(super) issuer: String,
    table: Table,
}

impl Stub {
    /// A server that answers 404 to everything until told otherwise.
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let table = Table::default();
        let served = table.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, served.clone()));
            }
        });
        Self { issuer, table }
    }

    /// A provider in order, with these keys.
    pub(super) async fn with_keys(keys: &[Value]) -> Self {
        let stub = Self::start().await;
        stub.publish(keys);
        let jwks = format!("{}/jwks", stub.issuer);
        stub.discover(&json!({"issuer": stub.issuer, "jwks_uri": jwks}));
        stub
    }

    pub(super) fn publish(&self, keys: &[Value]) {
        self.answers("/jwks", 200, &json!({"keys": keys}).to_string());
    }

    pub(super) fn discover(&self, document: &Value) {
        self.answers(DISCOVERY, 200, &document.to_string());
    }

    pub(super) fn answers(&self, path: &str, status: u16, body: &str) {
        let answer = (status, None, body.to_owned());
        self.table
            .answers
            .lock()
            .unwrap()
            .insert(path.to_owned(), answer);
    }

    pub(super) fn redirects(&self, path: &str, target: &str) {
        let answer = (307, Some(target.to_owned()), String::new());
        self.table
            .answers
            .lock()
            .unwrap()
            .insert(path.to_owned(), answer);
    }

    pub(super) fn redirects_discovery(&self, target: &str) {
        self.redirects(DISCOVERY, target);
    }

    /// How often a path was asked for.
    pub(super) fn asked(&self, path: &str) -> usize {
        let asked = self.table.asked.lock().unwrap();
        asked.iter().filter(|one| *one == path).count()
    }

    /// Every request target in order, as a proxy would see it too.
    pub(super) fn targets(&self) -> Vec<String> {
        self.table.asked.lock().unwrap().clone()
    }
}

async fn answer(mut stream: TcpStream, table: Table) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    table.asked.lock().unwrap().push(target.clone());
    let found = table.answers.lock().unwrap().get(&target).cloned();
    let (status, location, body) = found.unwrap_or((404, None, String::new()));
    let location = location.map_or(String::new(), |to| format!("location: {to}\r\n"));
    let answer = format!(
        "HTTP/1.1 {status} x\r\n{location}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // A client that went away is no fault of the test's.
    let _sent = stream.write_all(answer.as_bytes()).await;
}
