//! What happened: the timeline of everything, of a project, or of one bridge.

use crate::api;
use crate::appear::enter;
use crate::browser;
use crate::model::past::{Event, Past, Told};
use crate::model::problem::Problem;
use crate::model::sections::ListEntry;
use crate::model::shown::shown;
use crate::model::time;
use crate::page::page;
use crate::parts::button::ButtonStyle;
use crate::parts::icon::glyph;
use crate::prefs;
use crate::reactive::{dynamic, effect, live, memo};
use crate::text::page::projects;
use crate::text::{page as page_words, past as words, status};
use crate::views::home::Loading;
use crate::views::row::fact;
use crate::views::times::When;
use leptos::prelude::*;
use leptos::task::spawn_local;
use svc_shared::paths::segment;

/// Events read at once.
const PAGE: u32 = 50;

/// The view.
#[component]
pub fn Activity() -> impl IntoView {
    enter(words::TITLE);
    view! { <Timeline about=String::new() kind="" /> }
}

/// The newest few events or ends of one bridge, without controls.
#[component]
pub fn Few(
    /// Instance id.
    about: String,
    /// Which.
    told: Told,
) -> impl IntoView {
    let reader = Reader::of(about, "instance");
    reader.follow();
    dynamic(move || {
        let events = reader.past.with(|past| told.of(&past.events));
        match (events.is_empty(), reader.reading.get()) {
            (false, _) => view! {
                <ol class="list events few" data-testid="few-events">{rows(&events, false)}</ol>
            }
            .into_any(),
            (true, Reading::Under) => ().into_any(),
            (true, Reading::Done) => words::NO_ENDS.into_any(),
            (true, Reading::Failed(problem)) => problem.words().into_any(),
        }
    })
}

/// How the reading stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reading {
    Under,
    Done,
    Failed(Problem),
}

#[derive(Clone, Copy)]
struct Reader {
    places: Memo<Vec<ListEntry>>,
    query: StoredValue<String>,
    past: RwSignal<Past>,
    reading: RwSignal<Reading>,
}

impl Reader {
    /// Reads events of one project or bridge, or all when `about` is blank.
    ///
    /// `kind` is the query member.
    fn of(about: String, kind: &'static str) -> Self {
        let query =
            if about.is_empty() { String::new() } else { format!("&{kind}={}", segment(&about)) };
        let page = page();
        Self {
            // A bridge that came, went or changed has left something to read.
            places: memo(move || {
                page.store.places.with(|places| {
                    let is_ours = |place: &&ListEntry| {
                        about.is_empty() || place.project == about || place.id == about
                    };
                    places.iter().filter(is_ours).cloned().collect()
                })
            }),
            query: StoredValue::new(query),
            past: RwSignal::new(Past::default()),
            reading: RwSignal::new(Reading::Under),
        }
    }

    /// Reads the newest whenever something has happened.
    fn follow(self) {
        let page = page();
        effect(move || {
            if page.store.is_loaded.get() {
                self.places.with(|_| {});
                self.read(false);
            }
        });
    }

    /// Reads the newest, or what is older than what is there.
    fn read(self, older: bool) {
        let mut path = format!("/api/history?limit={PAGE}{}", self.query.get_value());
        let before = self.past.with_untracked(|past| past.before).filter(|_| older);
        if let Some(before) = before {
            path.push_str(&format!("&before={before}"));
        }
        self.reading.set(Reading::Under);
        spawn_local(async move {
            let found = api::get::<Past>(&path).await;
            let reading = match found {
                Ok(mut next) => {
                    // Left meanwhile: its signals are gone.
                    self.past.try_update(|past| {
                        if older {
                            let newer = std::mem::take(&mut past.events);
                            next.events.splice(..0, newer);
                        }
                        *past = next;
                    });
                    Reading::Done
                }
                Err(problem) => Reading::Failed(problem),
            };
            self.reading.set(reading);
        });
    }
}

/// The list of events, newest first, with a button for older ones.
#[component]
pub fn Timeline(
    /// The project or the bridge it is about; blank for everything.
    about: String,
    /// Query member for it.
    kind: &'static str,
) -> impl IntoView {
    let page = page();
    let of = about.clone();
    let reader = Reader::of(about, kind);
    let places = reader.places;
    let read_at = RwSignal::new(Vec::new());
    let refresh = move || {
        read_at.set(places.get_untracked());
        reader.read(false);
    };
    effect(move || {
        if page.store.is_loaded.get() {
            refresh();
        }
    });
    let is_old = memo(move || places.get() != read_at.get());
    let with_project = kind.is_empty();
    let events = memo(move || {
        let past = reader.past.get();
        // Of one bridge no background session tells anything.
        let jobs = match (kind, of.as_str()) {
            ("instance", _) => Vec::new(),
            (_, "") => page.store.all_jobs(None),
            (_, project) => page.store.all_jobs(Some(project)),
        };
        past.with_jobs(jobs.iter().map(|job| &**job))
    });
    let only = RwSignal::new(None::<&'static str>);
    let chip = move |word: Option<&'static str>| {
        let of = move |event: &Event| word.is_none_or(|word| event.face.word == word);
        let count = memo(move || events.with(|events| events.iter().filter(|e| of(e)).count()));
        view! {
            <button
                type="button"
                class="filter"
                aria-pressed=live(move || (only.get() == word).to_string())
                data-testid="event-filter"
                on:click=move |_| only.set(word)
            >
                {word.unwrap_or(projects::ALL)} <span class="num">{count}</span>
            </button>
        }
    };
    let words_of =
        [None, Some(status::CRASHED), Some(words::ENDED), Some(words::READY), Some(words::STARTED)];
    view! {
        <section class="timeline" data-testid="timeline">
            <div class="filters" role="group" aria-label=projects::FILTERS>{words_of.map(chip)}</div>
            {dynamic(move || (is_old.get() && reader.reading.get() == Reading::Done).then(|| view! {
                <button type="button" class=ButtonStyle::Soft.class() data-testid="timeline-newer" on:click=move |_| refresh()>
                    {words::NEWER}
                </button>
            }))}
            {dynamic(move || {
                let mut events = events.get();
                if events.is_empty() {
                    return match reader.reading.get() {
                        Reading::Under => view! { <Loading /> }.into_any(),
                        Reading::Done => view! { <div class="card empty"><p>{words::EMPTY}</p></div> }.into_any(),
                        Reading::Failed(_) => ().into_any(),
                    };
                }
                events.retain(|event| only.get().is_none_or(|word| event.face.word == word));
                if events.is_empty() {
                    return view! { <div class="card empty"><p>{projects::NOTHING_MATCHES}</p></div> }.into_any();
                }
                view! { <ol class="card list events">{rows(&events, with_project)}</ol> }.into_any()
            })}
            {dynamic(move || match reader.reading.get() {
                Reading::Failed(problem) => view! {
                    <p class="strip tone-danger" role="alert">
                        {problem.words()}
                        <button type="button" class="btn btn-secondary strip-end" on:click=move |_| refresh()>
                            {page_words::REPEAT}
                        </button>
                    </p>
                }.into_any(),
                Reading::Done if reader.past.with(|past| past.before.is_some()) => view! {
                    <button
                        type="button"
                        class=ButtonStyle::Secondary.class()
                        data-testid="timeline-older"
                        on:click=move |_| reader.read(true)
                    >
                        {words::OLDER}
                    </button>
                }.into_any(),
                Reading::Done | Reading::Under => ().into_any(),
            })}
        </section>
    }
}

/// The events, with a line before the first of each day.
fn rows(events: &[Event], with_project: bool) -> Vec<AnyView> {
    let mut rows = Vec::new();
    let mut day = String::new();
    for event in events {
        let mut date = time::date_time(event.at, prefs::zone(event.at.as_millis()));
        date.truncate("2026-11-21".len());
        if date != day {
            rows.push(view! { <li class="day">{date.clone()}</li> }.into_any());
            day = date;
        }
        let label = shown(&event.project).into_owned();
        let project = with_project.then(|| {
            // A forgotten session has no page; that of the project tells what is left of it.
            let (store, event) = (page().store, event.clone());
            let href = live(move || match (&event.instance, &event.job) {
                (Some(id), _) if !store.is_loaded.get() || store.instance(id).is_some() => {
                    browser::session_href(id)
                }
                (None, Some(id)) => browser::href(&crate::model::job::path(id)),
                (Some(_) | None, _) => browser::project_href(&event.project),
            });
            view! { <a class="name" href=href><bdi>{label}</bdi></a> }
        });
        rows.push(
            view! {
                <li class=event.face.tone.class() data-testid="event">
                    {glyph(event.face.glyph)} <span class="word">{event.face.word.clone()}</span> {project}
                    <span class="facts">{event.facts.iter().map(|text| fact(text)).collect_view()}</span>
                    <span class="num muted"><When at=Signal::stored(event.at) /></span>
                </li>
            }
            .into_any(),
        );
    }
    rows
}
