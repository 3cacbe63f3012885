//! Tests of the engine-free parts.

mod answers;
mod authorisation;
mod bodies;
mod cursors;
mod fingerprints;
mod headers;
mod problems;
mod queries;

use bronzeward_api::routes::{Route, RouteId};

fn route(id: RouteId) -> &'static Route {
    id.route().unwrap()
}
