//! Requests as they leave, answers as they are read, over a server of one answer.

use std::sync::mpsc;

use bronzeward_api::bodies::draft::CreateDraft;
use bronzeward_api::bodies::ingestion::StartIngestion;
use bronzeward_api::parse_body;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{
    Client, ClientError, Direction, IdempotencyKey, OperationFilter, Paging, Token, Transport,
    Write,
};

const DRAFT: &str = "drf_2rmpezm5rfx47azsgmp66z457a";

/// Answers every connection with `answer` and hands each request on, whole.
async fn server(answer: &'static str) -> (Client, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let answer = answer.replace("{length}", &body.len().to_string());
    let (sender, receiver) = mpsc::channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !whole(&request) {
                match stream.read_u8().await {
                    Ok(byte) => request.push(byte),
                    Err(_) => break,
                }
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            // A test that looks at no request has dropped the receiver.
            let _unread = sender.send(request);
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    });
    let client = Client::new(&base).unwrap();
    (client.with_token(Token::new("hunter2")), receiver)
}

fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        })
        .unwrap_or(0);
    body.len() >= length
}

const CREATED: &str = "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n\
    etag: \"1-ebup2hadf76apv5qcz6j6ai2q4\"\r\nlocation: /api/v1/drafts/x\r\n\
    bronzeward-epoch: ep_bqeknkmarvikuy7ofil2okekgi\r\nbronzeward-recovery-mode: true\r\n\
    bronzeward-request-id: req_1\r\nidempotent-replayed: true\r\nconnection: close\r\n\
    content-length: {length}\r\n\r\n{\"id\":\"drf_2rmpezm5rfx47azsgmp66z457a\",\
    \"cluster\":\"cl_oxbgrzprzpvnecj5ve3jht3dha\",\"title\":\"t\",\"state\":\"open\",\
    \"revision\":1,\"entries\":[],\"later\":1}";

fn write() -> Write {
    Write::new(IdempotencyKey::from_bits(7))
}

#[tokio::test]
async fn a_write_carries_its_headers_and_body_and_its_answer_is_read_whole() {
    let (client, requests) = server(CREATED).await;
    let body = r#"{"cluster":"cl_oxbgrzprzpvnecj5ve3jht3dha","title":"t"}"#;
    let draft: CreateDraft = parse_body(body.as_bytes()).unwrap();
    let write = write()
        .expecting("ep_bqeknkmarvikuy7ofil2okekgi")
        .if_match("\"1-a\"");
    let answer = client.create_draft(&write, &draft).await.unwrap();
    assert_eq!(answer.status, 201);
    assert_eq!(answer.body.title, "t");
    assert_eq!(
        answer.etag.as_deref(),
        Some("\"1-ebup2hadf76apv5qcz6j6ai2q4\"")
    );
    assert_eq!(answer.location.as_deref(), Some("/api/v1/drafts/x"));
    assert_eq!(
        answer.epoch.as_deref(),
        Some("ep_bqeknkmarvikuy7ofil2okekgi")
    );
    assert!(answer.recovery_mode && answer.replayed);
    assert_eq!(answer.request_id.as_deref(), Some("req_1"));

    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /api/v1/drafts HTTP/1.1\r\n"));
    for header in [
        "authorization: Bearer hunter2",
        "idempotency-key: 00000000000000000000000000000007",
        "bronzeward-expected-epoch: ep_bqeknkmarvikuy7ofil2okekgi",
        "if-match: \"1-a\"",
        "content-type: application/json",
    ] {
        assert!(request.contains(&format!("\r\n{header}\r\n")), "{header}");
    }
    assert!(request.ends_with(body));
}

#[tokio::test]
async fn a_removal_has_no_body_and_a_list_has_its_query() {
    let (client, requests) = server(CREATED).await;
    let _other_shape = client.remove_fragment(&write(), DRAFT, "registries").await;
    let request = requests.recv().unwrap();
    assert!(request.starts_with(&format!(
        "DELETE /api/v1/drafts/{DRAFT}/fragments/registries HTTP/1.1\r\n"
    )));
    assert!(request.ends_with("\r\n\r\n"));

    let filter = OperationFilter {
        plan: Some("pln_a&b"),
        kind: Some("adopt"),
        ..Default::default()
    };
    let _other_shape = client
        .operations(&filter, &Paging::from("c/+").limit(7))
        .await;
    let request = requests.recv().unwrap();
    assert!(request.starts_with(
        "GET /api/v1/operations?plan=pln_a%26b&kind=adopt&cursor=c%2F%2B&limit=7 HTTP/1.1\r\n"
    ));
    let _other_shape = client
        .timeline("mch_x", Direction::Newest, &Paging::start())
        .await;
    let request = requests.recv().unwrap();
    assert!(request.starts_with("GET /api/v1/machines/mch_x/timeline?order=newest HTTP/1.1\r\n"));
    assert!(!request.contains("idempotency-key"));
}

#[tokio::test]
async fn a_path_parameter_stays_one_segment() {
    let (client, requests) = server(CREATED).await;
    for step in ["", ".", ".."] {
        let error = client.draft(step).await.unwrap_err();
        assert!(matches!(error, ClientError::PathParameter));
    }
    let _other_shape = client.draft("a/../b?c").await;
    let request = requests.recv().unwrap();
    assert!(request.starts_with("GET /api/v1/drafts/a%2F..%2Fb%3Fc HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_problem_is_a_typed_error_with_its_members() {
    let (client, _requests) = server(
        "HTTP/1.1 409 Conflict\r\ncontent-type: application/problem+json\r\n\
         bronzeward-epoch: ep_1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n\
         {\"type\":\"urn:bronzeward:problem:conflict\",\"title\":\"A conflict\",\"status\":409,\
         \"instance\":\"req_1\",\"plan\":\"pln_1\",\"conflicts\":[{\"actual\":4}]}",
    )
    .await;
    let error = client.plan("pln_1").await.unwrap_err();
    assert_eq!(error.code(), Some("conflict"));
    let problem = error.problem().unwrap();
    assert_eq!(problem.status, 409);
    assert_eq!(problem.members["plan"], "pln_1");
    assert_eq!(problem.members["conflicts"][0]["actual"], 4);
    assert!(matches!(&error, ClientError::Problem { epoch: Some(epoch), .. } if epoch == "ep_1"));
}

#[tokio::test]
async fn lost_and_unreadable_answers_are_told_apart_and_quote_nothing() {
    let (client, _requests) = server(
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\nconnection: close\r\n\r\n{\"id\":\"planted\"",
    )
    .await;
    let lost = client.cluster("cl_1").await.unwrap_err();
    assert!(matches!(lost, ClientError::Transport(Transport::Lost)));
    let (client, _requests) =
        server("HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n\"planted01\"")
            .await;
    let odd = client.cluster("cl_1").await.unwrap_err();
    assert!(matches!(odd, ClientError::NotUnderstood { status: 200 }));
    assert!(!format!("{lost} {lost:?} {odd} {odd:?}").contains("planted"));
    let away = Client::new("http://127.0.0.1:1").unwrap();
    let away = away.server().await.unwrap_err();
    assert!(matches!(away, ClientError::Transport(Transport::Connect)));
    assert!(matches!(
        Client::new("ftp://a"),
        Err(ClientError::BaseAddress)
    ));
    assert!(matches!(
        Client::new("nonsense"),
        Err(ClientError::BaseAddress)
    ));
}

#[test]
fn neither_a_token_nor_a_document_is_printed() {
    let token = format!("{:?}", Token::new("hunter2"));
    let body = br#"{"kind":"import","machine":"mch_tqhcznunhyle4hnxru5hkt35uq","draft":"drf_2rmpezm5rfx47azsgmp66z457a","source":"document","document":"hunter2","staging":"transient"}"#;
    let body: StartIngestion = parse_body(body).unwrap();
    assert!(!format!("{token} {body:?}").contains("hunter2"));
}

#[test]
fn a_key_has_its_grammar() {
    for text in [
        "",
        &"a".repeat(15),
        &"a".repeat(129),
        "0123456789abcde ",
        "0123456789abcdeé",
    ] {
        assert!(IdempotencyKey::parse(text).is_err());
    }
    assert!(IdempotencyKey::parse("2f4c9a1e-6b0d-4d7a-9c3e-58a1f0e2b7d4").is_ok());
}
