//! Building blocks of the views.

pub mod button;
pub mod confirm;
pub mod dialog;
pub mod icon;
pub mod menu;
pub mod status;
pub mod visible;
pub mod window;
