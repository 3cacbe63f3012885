//! The simulator: the workflows of the server, unmodified, over a simulated world.
//!
//! One seed makes one run: a scheduler chooses whose await goes on, faults strike, people and
//! automation act, and judges outside the code under test look at every step. Imported by
//! nothing that ships. Never in this crate: a rule of the product, or an adapter.

pub mod change;
pub mod faults;
pub mod journal;
pub mod pg;
pub mod ports;
pub mod sched;
pub mod sim;
pub mod store;
pub mod trace;
pub mod world;
