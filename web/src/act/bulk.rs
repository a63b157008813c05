//! One action on several rows.

use super::{Target, Write};
use crate::browser;
use crate::model::bulk::{Verb, with_range};
use crate::model::offers::offers;
use crate::model::outcome::{Level, Notice};
use crate::model::problem::Problem;
use crate::page::Page;
use crate::store::JOB;
use crate::text::{bulk as words, page as page_words};
use leptos::prelude::*;
use leptos::task::spawn_local;

/// What came of each row, by its id.
pub type Results = RwSignal<Vec<(String, Notice)>>;

impl Page {
    /// Selects a row, or no longer.
    pub fn select(self, key: &str) {
        self.store.selected.update(|all| {
            let many = all.len();
            all.retain(|one| one != key);
            if all.len() == many {
                all.push(key.to_owned());
            }
        });
    }

    /// Selects every row between the one selected last and this one.
    pub fn select_to(self, key: &str) {
        let page = browser::attributes("[data-row]:has(.pick)", "data-row");
        self.store.selected.update(|all| *all = with_range(all, &page, key));
    }

    /// No row is selected.
    pub fn select_none(self) {
        self.store.selected.set(Vec::new());
    }

    /// The selected rows that the action fits.
    ///
    /// The flag says whether the row is a job. Tracked.
    pub fn chosen(self, verb: Verb) -> Vec<(bool, Target)> {
        let mut chosen = Vec::new();
        for key in self.store.selected.get() {
            if let Some(id) = key.strip_prefix(JOB) {
                let job = self.store.job(id).filter(|job| verb.takes_job(job));
                chosen.extend(job.map(|job| (true, Target::of_job(&job))));
            } else if let Some(record) = self.store.instance(&key) {
                let bridge = record.get();
                if verb.takes(&offers(&bridge, None)) {
                    chosen.push((false, Target::of(&bridge)));
                }
            }
        }
        chosen
    }

    /// Runs the action on all rows.
    ///
    /// The results are in `results`. They become a message when the user no longer looks at them.
    pub fn do_all(self, verb: Verb, all: Vec<(bool, Target)>, results: Results) {
        for (is_job, target) in all {
            let write = match (verb, is_job) {
                (Verb::Stop, false) => Write::stop(target),
                (Verb::Stop, true) => Write::stop_job(target),
                (Verb::Resume, false) => Write::resume(target, false),
                (Verb::Resume, true) => Write::resume_job(target, false),
                (Verb::Forget, false) => Write::forget(target),
                (Verb::Forget, true) => Write::remove_job(target),
            };
            // The same is on its way: its own message tells of it.
            let claim = self.pending.take(&write.about);
            spawn_local(async move {
                let notices = match claim {
                    None => vec![Notice::new(Level::Warning, words::UNDER_WAY.to_owned(), "")],
                    Some(_claim) => write.send().await.unwrap_or_else(|problem| {
                        if problem == Problem::NoAnswer {
                            self.live.look_again();
                        }
                        let title = page_words::not_done(write.verb, &write.object);
                        vec![Notice::new(Level::Danger, title, problem.words())]
                    }),
                };
                for notice in notices {
                    let of = (write.about.clone(), notice.clone());
                    if results.try_update(|all| all.push(of)).is_none() {
                        self.notice_of(notice); // nobody looks there any more
                    }
                }
            });
        }
    }
}
