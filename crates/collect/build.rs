//! Generates the messages of gNMI that are used, without protoc.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/gnmi/gnmi.proto");
    let descriptors = protox::compile(["gnmi.proto"], ["src/gnmi"])?;
    tonic_prost_build::configure().build_server(false).btree_map(".").compile_fds(descriptors)?;
    Ok(())
}
