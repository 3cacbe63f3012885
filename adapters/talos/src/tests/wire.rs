//! HTTP/2 itself: no pings of ours (T22).

use std::time::Duration;

use bronzeward_engine::ports::node::{ReadLimits, UnreadClass};
use bronzeward_harness::node::{Action, At, Fault};
use hyper::client::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::Machine;
use crate::dial;

// T22
#[tokio::test]
async fn a_long_quiet_call_sends_no_keep_alive_pings_and_the_node_would_count_them() {
    let machine = Machine::worker();
    let control = machine.node.control();
    let hold = Fault {
        method: "Get",
        resource: None,
        at: At::Before,
        action: Action::Drop,
        count: None,
    };
    control.fault(&hold).await.unwrap();
    let quiet = ReadLimits {
        connect: Duration::from_secs(20),
        call: Duration::from_secs(2),
    };
    let seen = machine.observe_as("admin", quiet).await;
    assert_eq!(seen.identity.unwrap_err().class, UnreadClass::Unreachable);
    assert_eq!(machine.count("pings").await, 0);

    // Control: a connection with keep-alive is counted by the same node.
    let stream = dial::dial(&machine.access("admin"), machine.endpoint).await;
    let (sender, driver) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_millis(100))
        .keep_alive_while_idle(true)
        .handshake::<_, tonic::body::Body>(TokioIo::new(stream.unwrap()))
        .await
        .unwrap();
    let driving = tokio::spawn(driver);
    control.wait_for("pings", 1).await.unwrap();
    drop(sender);
    driving.abort();
}
