//! Answers the real server does not give, from a stand-in that says the same to everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bronzeward_core::dependency::{Answer, Class, KvVersion, classify_kv};
use bronzeward_engine::ports::provider::{
    CompilerSecrets, Creation, DependencyMetadata, ExecutorSecrets, Failure, IngestionSecrets,
    TokenProbe, TokenState,
};
use bronzeward_harness::openbao::write_private;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::common::{Clients, cluster, path_in, string, text};
use crate::states::{Sample, all_are, outcomes};

const TOKEN: &str = "s.planted-token-of-a-stand-in";

/// Says one answer to every request, and keeps the requests.
struct Responder {
    address: String,
    requests: Arc<tokio::sync::Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
    folder: tempfile::TempDir,
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Responder {
    /// `answer` is sent as it is, or nothing at all if there is none.
    async fn saying(answer: Option<Vec<u8>>) -> Responder {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(tokio::sync::Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (kept, counted) = (requests.clone(), connections.clone());
        let task = tokio::spawn(async move {
            let mut silent = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let request = read_request(&mut stream).await;
                kept.lock().await.push(request);
                match &answer {
                    // The connection ends with the answer, so that a cut one is seen.
                    Some(bytes) => drop(stream.write_all(bytes).await),
                    None => silent.push(stream),
                }
            }
        });
        let folder = tempfile::tempdir().unwrap();
        write_private(&folder.path().join("token"), TOKEN).unwrap();
        Responder {
            address,
            requests,
            connections,
            task,
            folder,
        }
    }

    async fn with_body(status: &str, headers: &str, body: &str) -> Responder {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
        Responder::saying(Some([head.as_bytes(), body.as_bytes()].concat())).await
    }

    /// A success with this `data`.
    async fn with_data(data: &str) -> Responder {
        Responder::with_body("200 OK", "", &format!("{{\"data\":{data}}}")).await
    }

    fn clients(&self) -> Clients {
        let file = self.folder.path().join("token");
        Clients::with(&self.address, Duration::from_secs(2), |_| file.clone())
    }
}

/// Headers and as much of a body as they announce.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0u8; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let announced = head.lines().find_map(|line| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse::<usize>()
                    .ok()
            });
            if body.len() >= announced.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return text,
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_the_providers_is_unreadable_and_a_write_so_answered_unknown() {
    for (status, body) in [
        ("200 OK", ""),
        ("200 OK", "not JSON"),
        ("200 OK", "<html></html>"),
        ("200 OK", "{}"),
        ("200 OK", "{\"data\":null}"),
        ("200 OK", "{\"data\":[]}"),
        (
            "200 OK",
            "{\"data\":{\"data\":{},\"keys\":1,\"metadata\":{\"version\":\"1\"}}}",
        ),
        ("200 OK", "{\"errors\":[]}"),
        ("201 Created", "{\"data\":{}}"),
        ("204 No Content", ""),
        ("302 Found", ""),
        ("418 I'm a teapot", "{\"errors\":[]}"),
        ("500 Internal Server Error", "<html></html>"),
        ("502 Bad Gateway", "{\"errors\":[\"Vault is sealed\"]}"),
        ("504 Gateway Timeout", ""),
    ] {
        let responder = Responder::with_body(status, "", body).await;
        let clients = responder.clients();
        let sample = Sample::made_up();
        for (method, outcome) in outcomes(&clients, &sample).await {
            assert_eq!(
                outcome,
                Err(Failure::Unreadable),
                "{method} {status} {body}"
            );
        }
        let outcome = clients
            .ingestion
            .create_generation(&sample.path, &string("v"))
            .await;
        assert_eq!(
            outcome,
            Creation::Unknown(Failure::Unreadable),
            "{status} {body}"
        );
        let undecided = TokenState::Undecided(Failure::Unreadable);
        if !status.starts_with("200") {
            assert_eq!(clients.executor.probe_token().await, undecided, "{status}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_or_never_comes_is_unreachable_and_one_without_end_is_unreadable() {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{\"data\":".to_vec();
    for answer in [
        None,
        Some(cut),
        Some(Vec::new()),
        Some(b"no HTTP at all\r\n\r\n".to_vec()),
    ] {
        let responder = Responder::saying(answer).await;
        let file = responder.folder.path().join("token");
        let hasty = Duration::from_millis(200);
        let clients = Clients::with(&responder.address, hasty, |_| file.clone());
        let sample = Sample::made_up();
        all_are(&clients, &sample, Err(Failure::Unreachable)).await;
        let outcome = clients
            .ingestion
            .create_generation(&sample.path, &string("v"))
            .await;
        assert_eq!(outcome, Creation::Unknown(Failure::Unreachable));
    }
    let endless = Responder::with_body("200 OK", "", &" ".repeat(42 << 20)).await;
    let file = endless.folder.path().join("token");
    let clients = Clients::with(&endless.address, Duration::from_secs(20), |_| file.clone());
    let read = clients
        .compiler
        .read_generation(&path_in(cluster()), 1)
        .await;
    assert_eq!(read.err(), Some(Failure::Unreadable));
}

/// B26: reqwest alone would follow and take the token along to another host.
#[tokio::test]
async fn a_redirect_is_an_answer_and_the_token_goes_nowhere_else() {
    let elsewhere = Responder::with_data("{}").await;
    for status in [
        "301 Moved",
        "302 Found",
        "307 Temporary Redirect",
        "308 Permanent Redirect",
    ] {
        let location = format!("Location: {}/v1/secret/data/x\r\n", elsewhere.address);
        let responder = Responder::with_body(status, &location, "").await;
        let clients = responder.clients();
        // 307 is how a standby answers, the others are nobody's.
        let standby = status.starts_with("307");
        let class = if standby {
            Failure::Unavailable
        } else {
            Failure::Unreadable
        };
        for (method, outcome) in outcomes(&clients, &Sample::made_up()).await {
            let metadata = matches!(method, "kv metadata" | "key");
            let class = if metadata { Failure::Unreadable } else { class };
            assert_eq!(outcome, Err(class), "{method} {status}");
        }
        let path = path_in(cluster());
        let outcome = clients
            .ingestion
            .create_generation(&path, &string("v"))
            .await;
        assert_eq!(outcome, Creation::Unknown(class));
        assert!(responder.connections.load(Ordering::SeqCst) > 0);
    }
    assert_eq!(elsewhere.connections.load(Ordering::SeqCst), 0);
}

/// No namespace, no wrapping, no index of a node; the token in its header and nowhere else,
/// and no value in a URL.
#[tokio::test]
async fn a_request_carries_its_token_and_no_header_that_changes_an_answer() {
    let responder = Responder::with_data("{}").await;
    let clients = responder.clients();
    outcomes(&clients, &Sample::made_up()).await;
    let value = string("planted-value-of-a-request");
    clients
        .ingestion
        .create_generation(&path_in(cluster()), &value)
        .await;
    let requests = responder.requests.lock().await;
    assert_eq!(requests.len(), 14);
    for request in requests.iter() {
        let (head, _) = request.split_once("\r\n\r\n").unwrap();
        let lower = head.to_ascii_lowercase();
        assert_eq!(
            lower.matches(&format!("x-vault-token: {TOKEN}")).count(),
            1,
            "{head}"
        );
        assert_eq!(request.matches(TOKEN).count(), 1);
        for header in [
            "x-vault-index",
            "x-vault-namespace",
            "x-vault-wrap-ttl",
            "authorization",
        ] {
            assert!(!lower.contains(header), "{header}");
        }
        assert!(!head.contains("planted-value"));
    }
}

/// An answer that is well formed and still not the one to what was asked.
#[tokio::test]
async fn an_answer_to_another_question_is_not_taken() {
    let path = path_in(cluster());
    let read = async |data: &str| {
        let responder = Responder::with_data(data).await;
        responder
            .clients()
            .compiler
            .read_generation(&path, 1)
            .await
            .map(drop)
    };
    let right =
        r#"{"data":{"kind":"string","value":"v"},"metadata":{"version":1,"created_time":"t"}}"#;
    assert_eq!(read(right).await, Ok(()));
    for (from, to) in [("\"version\":1", "\"version\":2"), ("\"t\"", "\"\"")] {
        let other = right.replace(from, to);
        assert_eq!(read(&other).await, Err(Failure::Unreadable), "{other}");
    }

    let create = async |data: &str| {
        let responder = Responder::with_data(data).await;
        responder
            .clients()
            .ingestion
            .create_generation(&path, &string("v"))
            .await
    };
    let made = r#"{"version":1,"created_time":"t","deletion_time":"","destroyed":false}"#;
    assert_eq!(
        create(made).await,
        Creation::Created {
            created: "t".into()
        }
    );
    let second = create(&made.replace("\"version\":1", "\"version\":2")).await;
    assert_eq!(second, Creation::Unknown(Failure::Integrity));

    let encrypt = async |data: &str| {
        let responder = Responder::with_data(data).await;
        responder
            .clients()
            .compiler
            .encrypt_artifact(&text("x"))
            .await
            .map(drop)
    };
    assert_eq!(
        encrypt(r#"{"ciphertext":"vault:v2:QUJD","key_version":2}"#).await,
        Ok(())
    );
    for other in [
        r#"{"ciphertext":"vault:v2:QUJD","key_version":1}"#,
        r#"{"ciphertext":"vault:v02:QUJD","key_version":2}"#,
        r#"{"ciphertext":"QUJD","key_version":2}"#,
    ] {
        assert_eq!(encrypt(other).await, Err(Failure::Unreadable), "{other}");
    }

    let sample = Sample::made_up();
    let open = async |data: &str| {
        let responder = Responder::with_data(data).await;
        responder
            .clients()
            .executor
            .decrypt_artifact(&sample.artifact, 1)
            .await
            .map(drop)
    };
    assert_eq!(open(r#"{"plaintext":"QUJD"}"#).await, Ok(()));
    assert_eq!(
        open(r#"{"plaintext":"QUJ"}"#).await,
        Err(Failure::Unreadable)
    );
    assert_eq!(
        open(r#"{"plaintext":"//79"}"#).await,
        Err(Failure::Integrity)
    );
}

/// B12: a batch of digests is answered 200 whatever its items say.
#[tokio::test]
async fn one_failed_or_missing_digest_of_a_batch_fails_the_call() {
    let good = "{\"hmac\":\"vault:v1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}";
    let call = async |results: &[&str]| {
        let data = format!("{{\"batch_results\":[{}]}}", results.join(","));
        let responder = Responder::with_data(&data).await;
        let inputs = [text("a"), text("b")];
        responder
            .clients()
            .ingestion
            .keyed_digests(&inputs)
            .await
            .map(|made| made.len())
    };
    assert_eq!(call(&[good, good]).await, Ok(2));
    let failed = "{\"error\":\"unable to decode input as base64\"}";
    assert_eq!(call(&[good, failed]).await, Err(Failure::Refused));
    let both = good.replace('}', ",\"error\":\"x\"}");
    assert_eq!(call(&[good, both.as_str()]).await, Err(Failure::Refused));
    for other in [&[good][..], &[good, good, good], &[]] {
        assert_eq!(call(other).await, Err(Failure::Unreadable));
    }
}

/// DM §3 rule 2: a `Date` that is not there exactly once is not read.
#[tokio::test]
async fn a_date_that_is_missing_or_doubled_leaves_a_deletion_time_undecided() {
    let body = r#"{"data":{"current_version":1,"oldest_version":0,"versions":{"1":{"created_time":"t","deletion_time":"2020-01-01T00:00:00Z","destroyed":false}}}}"#;
    let date = "Date: Mon, 30 Nov 2026 04:01:00 GMT\r\n";
    let recorded = KvVersion {
        path: "gen/x".into(),
        version: 1,
        created: Some("t".into()),
    };
    for (headers, class) in [
        (date.to_owned(), Class::Blocked),
        (String::new(), Class::Unknown),
        (format!("{date}{date}"), Class::Unknown),
    ] {
        let responder = Responder::with_body("200 OK", &headers, body).await;
        let answer = responder.clients().metadata.kv_metadata("gen/x").await;
        assert!(matches!(answer, Answer::Answered { facts: Some(_), .. }));
        assert_eq!(classify_kv(&recorded, &answer).class, class, "{headers:?}");
    }
}
