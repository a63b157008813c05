//! The page's entry: mounts the application and marks the document with its build.

use leptos::prelude::*;

fn main() {
    console_error_panic_hook::set_once();
    if let Some(root) = document().document_element() {
        // Part of the module's bytes, and so of its name: see build.rs.
        let _ = root.set_attribute("data-build", env!("WEB_BUILD")); // a fixed, legal name
    }
    mount_to_body(|| view! { <main><h1>"Bridge Manager"</h1></main> });
}
