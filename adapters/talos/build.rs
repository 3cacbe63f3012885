//! Compiles the protobuf sources of `proto/talos` without protoc.
//!
//! The read-only and the mutating client are generated from separate sources into
//! separate modules, so that neither has the other's calls.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/talos");
    println!("cargo:rerun-if-changed={}", sources.display());
    let out = PathBuf::from(env::var("OUT_DIR")?);
    generate(
        &sources,
        &["machine_read.proto", "state.proto", "specs.proto"],
        &out.join("read"),
    )?;
    generate(&sources, &["machine_write.proto"], &out.join("write"))
}

fn generate(sources: &Path, files: &[&str], out: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(out)?;
    let compiled = protox::compile(files, [sources])?;
    // What the clients can call, for the test that holds them to their lists.
    fs::write(out.join("descriptors.bin"), compiled.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_server(false)
        .build_transport(false)
        .out_dir(out)
        // A message may hold a configuration: none of them can be printed.
        .skip_debug(["."])
        .compile_fds(compiled)?;
    Ok(())
}
