//! Records and bodies of the public routes.

pub mod activity;
pub mod approvals;
pub mod health;
pub mod instances;
pub mod jobs;
pub mod limits;
pub mod link;
pub mod planned_launches;
pub mod projects;
pub mod sessions;
pub mod stranded;
