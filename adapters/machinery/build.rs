//! Generates the Rust side of `proto/renderer.proto`, with a compiler in pure Rust.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = "../../proto";
    println!("cargo:rerun-if-changed={folder}/renderer.proto");
    let descriptors = protox::compile([format!("{folder}/renderer.proto")], [folder])?;
    // No Debug on any message: every one of them may hold values.
    prost_build::Config::new()
        .skip_debug(["."])
        .compile_fds(descriptors)?;
    Ok(())
}
