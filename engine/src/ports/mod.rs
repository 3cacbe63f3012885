//! What the workflows ask of the world. One trait per capability and identity, so
//! that a workflow's fields are its authority. A method is declared
//! `-> impl Future<Output = T> + Send` and implemented as a plain `async fn`.

pub mod node;
pub mod provider;
pub mod renderer;
mod runtime;
pub mod store;
mod tokens;

pub use runtime::{Alert, AlertSink, Entropy, Notifier, Tasks, Timer, Wake};
pub use tokens::{HumanClaims, HumanTokenRefusal, HumanTokens};
