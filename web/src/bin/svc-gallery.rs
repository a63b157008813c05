//! The gallery's entry.

#[cfg(not(target_arch = "wasm32"))]
fn main() -> Result<(), &'static str> {
    Err("svc-gallery is a page: build it for the browser with `cargo xtask dist`")
}

#[cfg(target_arch = "wasm32")]
fn main() {
    svc_web::show_gallery();
}
