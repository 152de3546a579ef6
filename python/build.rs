//! On macOS a module that is loaded by Python must be linked with symbols left open.
fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
