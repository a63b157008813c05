//! One part of the agent's configuration: read, edited, saved, put back.

use crate::api;
use crate::model::agent_config::faults::{Faults, faults, place_of};
use crate::model::agent_config::merge::merge;
use crate::model::agent_config::place::put;
use crate::model::agent_config::{Known, Subject, Surface, address};
use crate::model::problem::Problem;
use crate::model::wire;
use crate::page::page;
use crate::text::agent_config as words;
use crate::unsaved;
use gloo_net::http::Method;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use svc_shared::error::ErrorCode;
use svc_shared::internal::agent_config::{ConfigCopies, ConfigCopy, ConfigSaved};
use svc_shared::paths::CONFIG_WRITE;

/// An answer whose members depend on what was asked for.
pub type Answer = Map<String, Value>;

/// Counts what was written, for those who show how much there is.
#[derive(Clone, Copy)]
pub struct Writes(pub RwSignal<u32>);

impl Writes {
    /// Something was written. The view may be gone by then.
    pub fn tell(self) {
        let _ = self.0.try_update(|count| *count += 1);
    }
}

/// What somebody else wrote while this was edited.
#[derive(Debug, Clone, PartialEq)]
pub struct Meanwhile {
    /// What was read first.
    pub before: Value,
    /// What is in the file now.
    pub now: Value,
    /// Both changed the same, and nobody has chosen yet.
    pub is_open: bool,
}

/// An earlier version that may come back.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    /// Names it.
    pub id: String,
    /// What it contains.
    pub value: Value,
}

/// Edits without an editor.
struct Kept {
    /// What was read before them.
    base: Value,
    draft: Value,
}

thread_local! {
    /// By address: who looks at another part finds the edits again.
    static KEPT: RefCell<BTreeMap<String, Kept>> = const { RefCell::new(BTreeMap::new()) };
}

/// Everything that an editor holds. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Editor {
    /// What it is about.
    pub subject: StoredValue<Subject>,
    /// The part as it was read last; none before that.
    pub known: RwSignal<Option<Known>>,
    /// The part with the edits.
    pub draft: RwSignal<Value>,
    /// Counts the times that the form must be drawn anew.
    pub shape: RwSignal<u32>,
    /// Why it cannot be shown.
    pub unread: RwSignal<Option<Problem>>,
    /// Why it was not saved.
    pub refused: RwSignal<Option<String>>,
    /// What the service found wrong, by place.
    pub said: RwSignal<Faults>,
    /// What fields found wrong that no value can show.
    pub local: RwSignal<Faults>,
    /// Somebody else wrote.
    pub meanwhile: RwSignal<Option<Meanwhile>>,
    /// Earlier versions, once they are asked for.
    pub versions: RwSignal<Option<Vec<ConfigCopy>>>,
    /// The version that is compared with what is there.
    pub earlier: RwSignal<Option<Earlier>>,
    /// What is typed to confirm.
    pub typed: RwSignal<String>,
    /// What is typed for a file that may be run.
    pub reviewed: RwSignal<String>,
    /// On a phone: the differences are shown instead of the form.
    pub is_reviewing: RwSignal<bool>,
    /// A request is on its way.
    pub is_pending: RwSignal<bool>,
    /// Told after each write.
    pub writes: Writes,
}

impl Editor {
    /// An editor that begins to read.
    pub fn of(subject: Subject) -> Self {
        let editor = Self {
            subject: StoredValue::new(subject),
            known: RwSignal::new(None),
            draft: RwSignal::new(Value::Null),
            shape: RwSignal::new(0),
            unread: RwSignal::new(None),
            refused: RwSignal::new(None),
            said: RwSignal::new(Faults::new()),
            local: RwSignal::new(Faults::new()),
            meanwhile: RwSignal::new(None),
            versions: RwSignal::new(None),
            earlier: RwSignal::new(None),
            typed: RwSignal::new(String::new()),
            reviewed: RwSignal::new(String::new()),
            is_reviewing: RwSignal::new(false),
            is_pending: RwSignal::new(false),
            writes: expect_context(),
        };
        editor.read();
        editor
    }

    /// The surface.
    pub fn surface(self) -> Surface {
        self.subject.with_value(|subject| subject.surface)
    }

    /// What is typed before a save.
    pub fn confirmation(self) -> String {
        self.subject.with_value(Subject::confirmation)
    }

    /// Reads the part. What was typed is given up.
    pub fn read(self) {
        spawn_local(async move { self.read_now().await });
    }

    async fn read_now(self) {
        match self.asked().await {
            Ok(known) => match self.recalled() {
                Some(kept) => self.go_on(kept, known),
                None => self.take(known),
            },
            Err(problem) => drop(self.unread.try_set(Some(problem))),
        }
    }

    async fn asked(self) -> Result<Known, Problem> {
        let Some(subject) = self.subject.try_get_value() else { return Err(Problem::NoAnswer) };
        api::get::<Answer>(&subject.read()).await.map(|answer| subject.taken(answer))
    }

    /// Edits that were left behind when another part was opened.
    fn recalled(self) -> Option<Kept> {
        let is_first = self.known.try_with_untracked(Option::is_none)?;
        let key = self.subject.try_with_value(address)?;
        let (kept, left) = KEPT.with_borrow_mut(|all| (all.remove(&key), all.len()));
        unsaved::note_kept(left);
        kept.filter(|_| is_first)
    }

    /// Leaves the edits for the next editor of this part.
    fn remember(self) {
        let Some(known) = self.known.get_untracked() else { return };
        let (key, draft) = (self.subject.with_value(address), self.draft.get_untracked());
        let count = KEPT.with_borrow_mut(|all| {
            match draft == known.value {
                true => drop(all.remove(&key)),
                false => drop(all.insert(key, Kept { base: known.value, draft })),
            }
            all.len()
        });
        unsaved::note_kept(count);
    }

    /// Goes on with edits that were left behind.
    fn go_on(self, kept: Kept, known: Known) {
        let now = known.value.clone();
        self.take(known);
        let merged = merge(&kept.base, &kept.draft, &now);
        if kept.base != now {
            let is_open = merged.conflicts;
            self.meanwhile.set(Some(Meanwhile { before: kept.base, now, is_open }));
        }
        self.draft.set(merged.value);
        self.shape.update(|shape| *shape += 1);
        self.remember();
    }

    /// The part is as it is told. The view may be gone by then.
    fn take(self, known: Known) {
        if self.draft.try_set(known.value.clone()).is_some() {
            return;
        }
        self.known.set(Some(known));
        self.unread.set(None);
        self.settle();
    }

    /// Nothing is typed, asked or wrong any more.
    fn settle(self) {
        self.refused.set(None);
        self.said.set(Faults::new());
        self.local.set(Faults::new());
        self.meanwhile.set(None);
        self.versions.set(None);
        self.earlier.set(None);
        self.typed.set(String::new());
        self.reviewed.set(String::new());
        self.is_reviewing.set(false);
        self.shape.update(|shape| *shape += 1);
        self.remember();
    }

    /// Gives up the edits.
    pub fn discard(self) {
        if let Some(known) = self.known.get_untracked() {
            self.draft.set(known.value);
            self.settle();
        }
    }

    /// Edits differ from what was read.
    pub fn is_dirty(self) -> bool {
        self.known.with(|known| {
            known.as_ref().is_some_and(|known| self.draft.with(|draft| *draft != known.value))
        })
    }

    /// Puts a value at a place, or takes away what is there.
    pub fn set(self, at: &str, to: Option<Value>) {
        self.draft.update(|draft| put(draft, at, to));
        self.touched(at);
        self.remember();
    }

    /// The same, and the form is drawn anew.
    pub fn reshape(self, at: &str, to: Option<Value>) {
        self.set(at, to);
        self.shape.update(|shape| *shape += 1);
    }

    fn touched(self, at: &str) {
        let is_near = |place: &String| at.starts_with(place.as_str()) || place.starts_with(at);
        if self.said.with_untracked(|said| said.keys().any(is_near)) {
            self.said.update(|said| said.retain(|place, _| !is_near(place)));
        }
        if self.refused.with_untracked(Option::is_some) {
            self.refused.set(None);
        }
        if self.earlier.with_untracked(Option::is_some) {
            self.earlier.set(None);
            self.typed.set(String::new());
        }
    }

    /// What is wrong at a place.
    pub fn fault(self, at: &str) -> Option<String> {
        let of = |faults: &Faults| faults.get(at).cloned();
        self.local.with(of).or_else(|| self.said.with(of)).or_else(|| {
            let surface = self.surface();
            self.draft.with(|draft| faults(surface, draft)).get(at).cloned()
        })
    }

    /// Something must be repaired before it is sent.
    pub fn is_faulty(self) -> bool {
        let surface = self.surface();
        !self.local.with(Faults::is_empty)
            || self.draft.with(|draft| !faults(surface, draft).is_empty())
    }

    /// Notes what a field found wrong, or that it is well.
    pub fn mark(self, at: &str, wrong: Option<String>) {
        let is_noted = self.local.with_untracked(|local| local.get(at) == wrong.as_ref());
        if !is_noted {
            self.local.update(|local| match wrong {
                Some(wrong) => drop(local.insert(at.to_owned(), wrong)),
                None => drop(local.remove(at)),
            });
        }
    }

    /// Writes the edits, unless the file changed since it was read.
    pub fn save(self) {
        let Some(known) = self.known.get_untracked() else { return };
        if self.is_pending.get_untracked() {
            return;
        }
        let subject = self.subject.get_value();
        let (draft, typed) = (self.draft.get_untracked(), self.typed.get_untracked());
        let page = page();
        self.is_pending.set(true);
        self.refused.set(None);
        spawn_local(async move {
            let outcome = self.saved(&subject, known, draft, &typed).await;
            if self.is_pending.try_set(false).is_some() {
                return; // the view is gone
            }
            match outcome {
                Ok(()) => {
                    page.say.done(words::saved(subject.surface));
                    self.writes.tell();
                    self.read_now().await;
                }
                Err(problem) if problem.is(ErrorCode::Stale) => self.compare().await,
                Err(problem) => self.refuse(&subject, &problem),
            }
        });
    }

    async fn saved(
        self,
        subject: &Subject,
        known: Known,
        draft: Value,
        typed: &str,
    ) -> Result<(), Problem> {
        if subject.surface == Surface::Approvals {
            // Lists without a hash: what they are now is asked for instead.
            let now = self.asked().await?;
            if now.value != known.value {
                return Err(changed());
            }
        }
        let body = wire::written(&subject.written(draft, known.hash, typed));
        let answer = api::request(Method::PUT, &subject.path(), Some(body), None).await;
        api::understood::<Answer>(answer).map(drop)
    }

    /// Puts the edits on top of what is in the file now.
    async fn compare(self) {
        let now = match self.asked().await {
            Ok(now) => now,
            Err(problem) => return drop(self.refused.try_set(Some(problem.words()))),
        };
        let Some(Some(known)) = self.known.try_get_untracked() else { return };
        let mine = self.draft.get_untracked();
        let merged = merge(&known.value, &mine, &now.value);
        self.meanwhile.set(Some(Meanwhile {
            before: known.value,
            now: now.value.clone(),
            is_open: merged.conflicts,
        }));
        self.known.set(Some(now));
        self.draft.set(merged.value);
        self.typed.set(String::new());
        self.shape.update(|shape| *shape += 1);
        crate::browser::after_paint(|| {
            if let Some(strip) = crate::browser::element("[data-testid=config-meanwhile]") {
                strip.scroll_into_view_with_bool(false);
            }
        });
    }

    fn refuse(self, subject: &Subject, problem: &Problem) {
        let said = problem.words();
        let place = self.draft.with_untracked(|draft| place_of(subject, draft, &said));
        if let Some(place) = place {
            self.said.update(|all| drop(all.insert(place, said.clone())));
        }
        self.refused.set(Some(said));
    }

    /// Reads which earlier versions are kept.
    pub fn list_versions(self) {
        let subject = self.subject.get_value();
        let Some(word) = subject.kept_as() else { return };
        let more = [
            ("surface", word),
            ("name", subject.name.as_str()),
            ("relative", subject.file.as_str()),
        ];
        let path = subject.read_at("copies", &more);
        spawn_local(async move {
            match api::get::<ConfigCopies>(&path).await {
                Ok(found) => drop(self.versions.try_set(Some(found.copies))),
                Err(problem) => drop(self.refused.try_set(Some(problem.words()))),
            }
        });
    }

    /// Compares an earlier version with what is there.
    pub fn look_at(self, id: String) {
        let subject = self.subject.get_value();
        let Some(word) = subject.kept_as() else { return };
        let more = [
            ("surface", word),
            ("name", subject.name.as_str()),
            ("relative", subject.file.as_str()),
            ("copy", id.as_str()),
        ];
        let path = subject.read_at("copies/content", &more);
        spawn_local(async move {
            match api::get::<Answer>(&path).await {
                Ok(answer) => {
                    let value = subject.taken(answer).value;
                    let _ = self.typed.try_set(String::new());
                    let _ = self.earlier.try_set(Some(Earlier { id, value }));
                    let _ = self.is_reviewing.try_set(true);
                }
                Err(problem) => drop(self.refused.try_set(Some(problem.words()))),
            }
        });
    }

    /// Puts the version back that is compared.
    pub fn put_back(self) {
        let (Some(earlier), Some(known)) =
            (self.earlier.get_untracked(), self.known.get_untracked())
        else {
            return;
        };
        let subject = self.subject.get_value();
        let Some(word) = subject.kept_as() else { return };
        let mut body = subject.body(&self.typed.get_untracked());
        body.insert("surface".to_owned(), word.into());
        body.insert("copy".to_owned(), earlier.id.into());
        if !subject.name.is_empty() {
            body.insert("name".to_owned(), subject.name.clone().into());
        }
        if let Some(file) = subject.skill_file() {
            body.insert("relative".to_owned(), file.into());
        }
        if let Some(hash) = known.hash {
            body.insert("hash".to_owned(), hash.into());
        }
        let page = page();
        self.is_pending.set(true);
        self.refused.set(None);
        spawn_local(async move {
            let path = format!("{CONFIG_WRITE}/copies/restore");
            let body = wire::written(&body);
            let answer = api::request(Method::POST, &path, Some(body), None).await;
            let outcome = api::understood::<ConfigSaved>(answer);
            if self.is_pending.try_set(false).is_some() {
                return;
            }
            match outcome {
                Ok(_) => {
                    page.say.done(words::review::IS_BACK.to_owned());
                    self.writes.tell();
                    self.read_now().await;
                }
                Err(problem) if problem.is(ErrorCode::Stale) => self.compare().await,
                Err(problem) => self.refuse(&subject, &problem),
            }
        });
    }
}

/// The refusal of what is based on another state.
fn changed() -> Problem {
    Problem::Refused {
        status: 409,
        code: ErrorCode::Stale.as_str().to_owned(),
        detail: words::review::MERGED.to_owned(),
        error_id: None,
        retry_after: None,
    }
}
