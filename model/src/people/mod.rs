//! Operators and automation: who acts in a world, on what, how often.

pub mod acts;
mod crowd;
pub mod hand;
pub mod view;

pub use crowd::{Doing, come};
