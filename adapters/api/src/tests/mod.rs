//! Tests of the crate: strict bodies, forms, the table and its document.

mod bodies;
mod document;
mod forms;
mod table;
