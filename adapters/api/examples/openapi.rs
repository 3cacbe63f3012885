//! Prints the OpenAPI document as `adapters/api/openapi.yaml` has it.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(bronzeward_api::openapi::yaml().as_bytes())
}
