//! Actions on what a restart of the machine ended.

use super::{Write, said};
use crate::model::wire;
use crate::page::Page;
use crate::text::restore as words;
use gloo_net::http::Method;
use svc_shared::internal::restore::{DismissRequest, RestoreRequest};
use svc_shared::paths::RESTORE;

/// What a request about a restore is pending as.
pub const PENDING: &str = "restore";

impl Page {
    /// Restores these sessions in this order, so many at the same time.
    ///
    /// What becomes of it comes with the stream, with one message at the end.
    pub fn restore(self, ids: Vec<String>, parallel: u64) {
        let object = words::object(ids.len());
        let body = RestoreRequest { ids, parallel: Some(parallel) };
        let write = Write::new(
            PENDING.to_owned(),
            words::RESTORE,
            object,
            Method::POST,
            RESTORE.to_owned(),
            |_, _| Ok(Vec::new()),
        );
        self.write(Write { body: Some(wire::written(&body)), ..write });
    }

    /// Stops what of the running restore has not begun.
    pub fn cancel_restore(self) {
        self.write(Write::new(
            PENDING.to_owned(),
            words::CANCEL,
            words::RUNNING_OBJECT.to_owned(),
            Method::POST,
            format!("{RESTORE}/cancel"),
            |_, _| said(words::CANCELLED.to_owned()),
        ));
    }

    /// Takes these sessions out of the offer.
    pub fn decline_restore(self, ids: Vec<String>) {
        let object = words::object(ids.len());
        let path = format!("{RESTORE}/dismiss");
        let act = words::DISMISS;
        let write = Write::new(PENDING.to_owned(), act, object, Method::POST, path, |write, _| {
            said(words::dismissed(&write.object))
        });
        let body = Some(wire::written(&DismissRequest { ids }));
        self.write(Write { body, after: Some(|page| page.restores.ask()), ..write });
    }
}
