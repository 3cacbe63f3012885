//! The mutating client: ApplyConfiguration in mode no-reboot, once (EaR 3.3, 3.5).
//!
//! Dispatch alone holds it. The permit it takes is the engine's proof of a committed
//! attempt; it ends with the call, so an attempt cannot be sent twice. The mode is always
//! set, since its zero value reboots the node (T1) and AUTO may (T2); a dry run would
//! cancel somebody's pending trial (T3), and neither it nor a trial can be asked for
//! through this type. The message that is sent is owned by the HTTP/2 layer until it is
//! written, and its memory is not wiped.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use bronzeward_core::attempt::ResponseClass;
use bronzeward_core::inventory::Endpoint;
use bronzeward_engine::ports::node::{ApplyAnswer, NodeCode, NodeWriter, TalosAccess};
use tokio::time::{Instant, timeout_at};

use crate::classify::{Accepted, Ended, response_class};
use crate::connection::{Connection, MAX_MESSAGE_BYTES, Outcome, WRITE_CALLS};
use crate::dial;
use crate::wire::write::machine::apply_configuration_request::Mode;
use crate::wire::write::machine::machine_service_client::MachineServiceClient;
use crate::wire::write::machine::{ApplyConfigurationRequest, ApplyConfigurationResponse};

/// The mutating client, for one type of permit.
pub struct MutatingTalos<P>(PhantomData<fn(P)>);

impl<P> MutatingTalos<P> {
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<P> Default for MutatingTalos<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> fmt::Debug for MutatingTalos<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MutatingTalos")
    }
}

impl<P: Send + 'static> NodeWriter for MutatingTalos<P> {
    type Permit = P;

    async fn apply(
        &self,
        permit: P,
        access: &TalosAccess,
        endpoint: Endpoint,
        configuration: &[u8],
        deadline: Duration,
    ) -> ApplyAnswer {
        let until = Instant::now() + deadline;
        let connected = timeout_at(until, async {
            let stream = dial::dial(access, endpoint).await?;
            Connection::open(stream, endpoint, WRITE_CALLS).await
        });
        let connection = match connected.await {
            Ok(Ok(connection)) => connection,
            // A failed dial is no proof that nothing was sent by an earlier attempt, and is
            // never told as one: it is transport like the rest.
            Ok(Err(code)) => return ours(code),
            Err(_) => return ours(NodeCode::NO_ANSWER),
        };
        let answer = send(connection, configuration, until).await;
        drop(permit);
        answer
    }
}

async fn send(connection: Connection, configuration: &[u8], until: Instant) -> ApplyAnswer {
    let mut client = MachineServiceClient::with_origin(connection.clone(), connection.origin())
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let request = ApplyConfigurationRequest {
        data: configuration.to_vec(),
        mode: Mode::NoReboot.into(),
    };
    match timeout_at(until, client.apply_configuration(request)).await {
        Err(_) => ours(NodeCode::NO_ANSWER),
        Ok(result) => match connection.outcome(result) {
            Outcome::Answer(answer) => accepted(&answer),
            Outcome::Refusal(refusal) => ApplyAnswer {
                class: response_class(&Ended::Refusal {
                    code: refusal.code,
                    text: refusal.text(),
                }),
                code: NodeCode::grpc(refusal.code),
            },
            Outcome::Ours(code) => ours(code),
        },
    }
}

fn accepted(answer: &ApplyConfigurationResponse) -> ApplyAnswer {
    let class = response_class(&Ended::Accepted(Accepted {
        messages: answer.messages.len(),
        failed_node: answer
            .messages
            .iter()
            .filter_map(|message| message.metadata.as_ref())
            .any(|metadata| !metadata.error.is_empty()),
        mode_as_asked: answer
            .messages
            .iter()
            .all(|message| message.mode == i32::from(Mode::NoReboot)),
    }));
    let code = match class {
        ResponseClass::Accepted => NodeCode::grpc(0),
        ResponseClass::RefusedValidation
        | ResponseClass::RefusedImmediate
        | ResponseClass::Answered
        | ResponseClass::Transport => NodeCode::MALFORMED,
    };
    ApplyAnswer { class, code }
}

fn ours(code: NodeCode) -> ApplyAnswer {
    ApplyAnswer {
        class: response_class(&Ended::Ours),
        code,
    }
}
