//! Row of a launch that waits for a plan limit, or did not start after it.

use crate::browser;
use crate::model::planned as rules;
use crate::model::shown::shown;
use crate::page::page;
use crate::reactive::{derived, dynamic, memo};
use crate::store::PLANNED;
use crate::text::{planned as words, session::named};
use crate::views::act_button::ActButton;
use crate::views::row::{Row, fact};
use crate::views::times::clock_or_date;
use leptos::prelude::*;
use svc_shared::api::planned_launches::PlannedLaunch;

/// The row of a launch.
pub fn planned_row(id: String) -> AnyView {
    let page = page();
    let Some(first) = page.store.launches.with_untracked(|all| all.get(&id).cloned()) else {
        return ().into_any();
    };
    let (project, href) = (first.project.clone(), browser::project_href(&first.project));
    let key = id.clone();
    // What has gone is shown as it was until its row is taken away.
    let one: Memo<PlannedLaunch> = Memo::new(move |known: Option<&PlannedLaunch>| {
        let now = page.store.launches.with(|all| all.get(&id).cloned());
        now.or_else(|| known.cloned()).unwrap_or_else(|| first.clone())
    });
    let name = project.clone();
    Row {
        key: format!("{PLANNED}{key}"),
        testid: "planned-row",
        instance: None,
        project: Signal::stored(project.clone()),
        status: derived(move || one.with(|one| one.state.to_string())),
        href,
        face: memo(move || one.with(rules::face)),
        name: memo(move || shown(&name).into_owned()),
        label: memo(move || {
            one.with(|one| one.prompt.clone()).map(|text| shown(&text).into_owned())
        }),
        kind: memo(move || one.with(|one| rules::kind(one).to_owned())),
        chips: ().into_any(),
        facts: view! {
            {dynamic(move || one.with(|one| fact(&words::starts(&clock_or_date(one.due_at)))))}
            {dynamic(move || one.with(|one| one.reason.as_deref().map(fact)))}
            // On a phone the further name has no place.
            {dynamic(move || one.with(|one| one.prompt.clone()).map(|text| view! {
                <span class="fact only-phone"><bdi>{shown(&text).into_owned()}</bdi></span>
            }))}
        }
        .into_any(),
        used: ().into_any(),
        actions: view! { <Remedy id=key one=one /> }.into_any(),
        below: ().into_any(),
    }
    .view()
}

#[component]
fn Remedy(id: String, one: Memo<PlannedLaunch>) -> impl IntoView {
    let page = page();
    let id = StoredValue::new(id);
    let remedy = memo(move || one.with(rules::remedy));
    let is_pending = derived(move || page.pending.has(&id.get_value()));
    dynamic(move || {
        remedy.get().map(|label| {
            let name = derived(move || named(label, &one.with(|one| one.project.clone())));
            let act = Callback::new(move |()| {
                if let Some(one) = one.try_get_untracked() {
                    page.cancel_launch(&one, label);
                }
            });
            view! {
                <ActButton label=label name=name on_act=act is_pending=is_pending testid="act-cancel-launch" />
            }
        })
    })
}
