//! The frame around the views: navigation, top bar, banner, messages, dialogs.

mod announce;
mod banner;
pub mod bars;
pub mod keys;
mod leaving;
mod palette;
mod restart;
pub mod sheets;
mod toasts;

use crate::browser;
use crate::model::job::Group;
use crate::page::page;
use crate::reactive::{dynamic, effect, memo};
use crate::text::page as words;
use crate::views::{
    bulk::BulkBar,
    launch::LaunchHost,
    missing::{SignedOut, WrongAddress},
    trust::TrustHost,
};
use announce::Announcer;
use banner::{Banner, OutdatedStrip};
use bars::{BottomBar, Rail, TopBar};
use leaving::Leaving;
use leptos::prelude::*;
use sheets::Sheets;
use toasts::Toasts;

/// The frame.
#[component]
pub fn Shell(children: Children) -> impl IntoView {
    let page = page();
    // Bad ends that nobody has seen, and jobs that wait for an answer.
    let wanted = memo(move || {
        page.store.unseen.with(std::collections::HashSet::len)
            + page.store.jobs_of(&[Group::Waiting]).len()
            + page.store.questions.with(Vec::len)
    });
    let title = move || {
        let host = page.live.basics.with(|b| b.as_ref().map(|b| b.hostname.clone()));
        words::title(&page.view.get(), &host.unwrap_or_default(), wanted.get())
    };
    Effect::new(move |_| document().set_title(&title()));
    effect(move || browser::badge(wanted.get()));
    let skip = move |event: web_sys::MouseEvent| {
        event.prevent_default(); // the address stays
        browser::focus("#content");
    };
    view! {
            <a class="btn btn-primary skip" href="#content" on:click=skip>{words::nav::SKIP}</a>
            <div class="shell" class:stale=move || page.live.is_offline.get() class:selecting=move || page.is_selecting.get()>
                <Rail />
                <TopBar />
                <div class="main">
                    <Banner />
                    <main id="content" class="content" tabindex="-1">
                        <OutdatedStrip />
    {dynamic(move || page.live.wrong_address.get().then(|| view! { <WrongAddress /> }))}
                        {children()}
                    </main>
                    <BulkBar />
                    <Toasts />
                </div>
                <BottomBar />
            </div>
            <Announcer />
            <LaunchHost />
            <TrustHost />
            <Sheets />
            <Leaving />
    {dynamic(move || page.live.signed_out.get().then(|| view! { <SignedOut /> }))}
        }
}
