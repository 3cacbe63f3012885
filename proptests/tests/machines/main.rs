//! State machines of `core` beside reference models: plan, operation, claim, scope, drift and
//! the recovery epoch.
//!
//! A model is written from the contract's tables and keeps another form of the state than the
//! code does (a history, a set of reasons, a stage), so that one mistake is not made twice. A
//! drawn sequence of commands is given to both; after each, their states and their refusals
//! must be one. Each property has controls: the same draw, with a rule dropped or the model
//! told otherwise, must find a difference. Never in this program: a clock, a store, I/O.

mod check;
mod claim;
mod drift;
mod epoch;
mod furniture;
mod operation;
mod plan;
mod scope;
