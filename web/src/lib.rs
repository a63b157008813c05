//! The page of the service.
//!
//! The rules are in [`model`], the texts in [`text`]. The views and the connection exist for the
//! browser only.

pub mod model;
pub mod text;

#[cfg(target_arch = "wasm32")]
mod act;
#[cfg(target_arch = "wasm32")]
mod api;
#[cfg(target_arch = "wasm32")]
mod app;
#[cfg(target_arch = "wasm32")]
mod appear;
#[cfg(target_arch = "wasm32")]
mod browser;
#[cfg(target_arch = "wasm32")]
mod clock;
#[cfg(target_arch = "wasm32")]
mod crash;
#[cfg(target_arch = "wasm32")]
mod direct_feed;
#[cfg(target_arch = "wasm32")]
mod drafts;
#[cfg(target_arch = "wasm32")]
mod focus;
#[cfg(target_arch = "wasm32")]
mod gallery;
#[cfg(target_arch = "wasm32")]
mod layers;
#[cfg(target_arch = "wasm32")]
mod lazy;
#[cfg(target_arch = "wasm32")]
mod live;
#[cfg(target_arch = "wasm32")]
mod log_feed;
#[cfg(target_arch = "wasm32")]
mod nav;
#[cfg(target_arch = "wasm32")]
mod notify;
#[cfg(target_arch = "wasm32")]
mod page;
#[cfg(target_arch = "wasm32")]
mod parts;
#[cfg(target_arch = "wasm32")]
mod prefs;
#[cfg(target_arch = "wasm32")]
mod push;
#[cfg(target_arch = "wasm32")]
mod reactive;
#[cfg(target_arch = "wasm32")]
mod ready;
#[cfg(target_arch = "wasm32")]
mod restarting;
#[cfg(target_arch = "wasm32")]
mod restores;
#[cfg(target_arch = "wasm32")]
mod say;
#[cfg(target_arch = "wasm32")]
mod shell;
#[cfg(target_arch = "wasm32")]
mod socket;
#[cfg(target_arch = "wasm32")]
mod store;
#[cfg(target_arch = "wasm32")]
mod talk_feed;
#[cfg(target_arch = "wasm32")]
mod terminal_feed;
#[cfg(target_arch = "wasm32")]
mod unsaved;
#[cfg(target_arch = "wasm32")]
mod views;
#[cfg(target_arch = "wasm32")]
mod whole;

#[cfg(target_arch = "wasm32")]
pub use app::run;
#[cfg(target_arch = "wasm32")]
pub use gallery::show as show_gallery;
