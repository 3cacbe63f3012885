//! The provider clients against the real OpenBao.
//!
//! Where a test is about one of the provider's traps it names it (B1 to B34 of the facts).
//! A stand-in answers only where the real server cannot be made to: malformed answers.

mod common;
mod creation;
mod logs;
mod metadata;
mod reading;
mod responder;
mod states;
mod transit;
mod values;
