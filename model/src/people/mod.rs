//! Operators and automation: who acts in a world, on what, how often.

pub mod acts;
mod crowd;
mod doing;
pub mod hand;
mod keeper;
pub mod recovery;
mod session;
pub mod tools;
pub mod view;
pub mod withdraw;

pub use crowd::come;
pub use doing::Doing;
