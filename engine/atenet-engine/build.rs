//! Compiles the control plane's contract without a protoc binary.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = "../../proto";
    let files = ["atenet/proto/ateapi.proto", "atenet/proto/credprovider.proto", "atenet/proto/routersupport.proto"];
    let set = protox::compile(files, [root])?;
    tonic_prost_build::configure().build_server(false).build_transport(false).compile_fds(set)?;
    let set = protox::compile(
        ["external_processor.proto", "network_external_processor.proto"],
        ["../../proto/envoy-ext-proc"],
    )?;
    tonic_prost_build::configure().build_transport(false).compile_fds(set)?;
    let set = protox::compile(["trace.proto"], ["../../proto/otlp"])?;
    tonic_prost_build::configure().build_server(false).build_transport(false).compile_fds(set)?;
    println!("cargo:rerun-if-changed={root}");
    Ok(())
}
