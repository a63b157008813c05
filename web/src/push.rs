//! Notifications of this device while the page is closed.
//!
//! Asks the browser, and tells the service.

use crate::model::problem::Problem;
use crate::model::push::{Facts, Standing, standing};
use crate::{api, browser};
use gloo_net::http::Method;
use js_sys::{Promise, Reflect};
use leptos::prelude::{document, window};
use leptos::task::spawn_local;
use svc_shared::internal::push::{PushDevice, PushKey, SubscribePush};
use svc_shared::paths;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Notification, NotificationPermission, PushManager, PushSubscription,
    PushSubscriptionOptionsInit, ServiceWorkerRegistration,
};

/// Where this browser keeps its own id; nothing there means off.
const CHOICE: &str = "svc.push";

/// Why a switch did not do what it was asked.
pub enum Failure {
    /// The service refused.
    Service(Problem),
    /// The browser refused.
    Browser,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Service(problem)
    }
}

impl From<JsValue> for Failure {
    fn from(_: JsValue) -> Self {
        Self::Browser
    }
}

fn has(target: &JsValue, name: &str) -> bool {
    Reflect::has(target, &name.into()).unwrap_or(false)
}

async fn done<T: JsCast>(asked: Promise) -> Result<T, JsValue> {
    JsFuture::from(asked).await?.dyn_into()
}

/// The registration of the worker, if there is one.
async fn registration() -> Option<ServiceWorkerRegistration> {
    let workers = window().navigator().service_worker();
    done(workers.get_registration_with_document_url(&browser::href("/"))).await.ok()
}

async fn subscription(manager: &PushManager) -> Option<PushSubscription> {
    done(manager.get_subscription().ok()?).await.ok()
}

fn is_supported() -> bool {
    let window = window();
    has(&window.navigator(), "serviceWorker")
        && has(&window, "PushManager")
        && has(&window, "Notification")
}

/// How they stand here.
pub async fn look(is_offered: bool) -> Standing {
    let is_supported = is_supported();
    // Only phones and tablets that install pages by hand say whether this one is installed.
    let navigator = window().navigator();
    let installed = Reflect::get(&navigator, &"standalone".into()).ok();
    let needs_install = !is_supported && installed.and_then(|it| it.as_bool()) == Some(false);
    let permission = is_supported.then(Notification::permission);
    let is_chosen = browser::stored(CHOICE).is_some();
    let is_on = permission == Some(NotificationPermission::Granted) && is_chosen && {
        match registration().await.map(|it| it.push_manager()) {
            Some(Ok(manager)) => subscription(&manager).await.is_some(),
            _ => false,
        }
    };
    standing(Facts {
        is_offered,
        is_secure: window().is_secure_context(),
        is_supported,
        needs_install,
        is_denied: permission == Some(NotificationPermission::Denied),
        is_on,
    })
}

/// Switches them on: the browser may ask for the permission first.
pub async fn switch_on() -> Result<(), Failure> {
    let answer = JsFuture::from(Notification::request_permission()?).await?;
    if answer.as_string().as_deref() != Some("granted") {
        // What was answered is read by whoever looks next.
        return Ok(());
    }
    subscribe().await
}

/// Subscribes with the key of the service, and tells the service.
async fn subscribe() -> Result<(), Failure> {
    let key: PushKey = api::get(paths::PUSH_KEY).await?;
    let workers = window().navigator().service_worker();
    let worker = workers.register(&browser::href(paths::WORKER));
    let _: ServiceWorkerRegistration = done(worker).await?;
    let ready: ServiceWorkerRegistration = done(workers.ready()?).await?;
    let manager = ready.push_manager()?;
    let options = PushSubscriptionOptionsInit::new();
    options.set_user_visible_only(true);
    options.set_application_server_key(&JsValue::from_str(&key.public_key));
    let mut made = done::<PushSubscription>(manager.subscribe_with_options(&options)?).await;
    if made.is_err()
        && let Some(old) = subscription(&manager).await
    {
        // Made with another key of the service.
        JsFuture::from(old.unsubscribe()?).await?;
        made = done(manager.subscribe_with_options(&options)?).await;
    }
    let text = js_sys::JSON::stringify(&made?.to_json()?.into())?;
    let text = String::from(text);
    let body: SubscribePush = serde_json::from_str(&text).map_err(|_| Failure::Browser)?;
    let body = serde_json::to_string(&body).map_err(|_| Failure::Browser)?;
    let answer = api::request(Method::POST, paths::PUSH_SUBSCRIPTIONS, Some(body), None).await;
    let device: PushDevice = api::understood(answer)?;
    browser::store(CHOICE, Some(&device.id));
    Ok(())
}

/// Switches them off here.
pub async fn switch_off() -> Result<(), Failure> {
    if let Some(id) = browser::stored(CHOICE) {
        browser::store(CHOICE, None);
        let path = format!("{}/{}", paths::PUSH_SUBSCRIPTIONS, paths::segment(&id));
        // Where the service does not answer, the push service tells it that nobody listens.
        drop(api::request(Method::DELETE, &path, None, None).await);
    }
    if let Some(registration) = registration().await {
        if let Some(subscription) = subscription(&registration.push_manager()?).await {
            JsFuture::from(subscription.unsubscribe()?).await?;
        }
        JsFuture::from(registration.unregister()?).await?;
    }
    Ok(())
}

/// Lets the system install the page.
///
/// Some have notifications for installed pages only.
///
/// Named here and not in the document, which nobody shall wait longer for.
fn offer_to_install() {
    let add = || -> Option<()> {
        let link = document().create_element("link").ok()?;
        link.set_attribute("rel", "manifest").ok()?;
        link.set_attribute("href", &browser::href(paths::MANIFEST)).ok()?;
        let head = document().query_selector("head").ok()??;
        head.append_child(&link).ok().map(drop)
    };
    let _ = add(); // a document without a head is none of ours
}

/// Keeps what is on bound to this sign-in, and ends what is not.
///
/// Once for each page.
pub fn settle(is_offered: bool) {
    if is_offered {
        offer_to_install();
    }
    if !window().is_secure_context() || !is_supported() {
        return;
    }
    spawn_local(async move {
        // What fails here is shown where they are switched.
        let _ = match (look(is_offered).await, registration().await) {
            (Standing::On, _) => subscribe().await,
            (_, Some(_)) => switch_off().await,
            (_, None) => Ok(()),
        };
    });
}
