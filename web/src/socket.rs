//! A socket with one handler, and how it is opened again.
//!
//! Dropping it closes the socket, and the handler hears nothing more.

use crate::browser;
use crate::model::stream::delay_ms;
use leptos::leptos_dom::helpers::TimeoutHandle;
use leptos::prelude::set_timeout_with_handle;
use std::time::Duration;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{CloseEvent, Event, MessageEvent, WebSocket};

/// What a socket tells.
pub enum Heard {
    /// It is open.
    Open,
    /// A text frame.
    Text(String),
    /// It is closed, with this code.
    Closed(u16),
}

/// A connection that is opened again when it is lost, later after each failure.
#[derive(Default)]
pub struct Reconnecting {
    socket: Option<Socket>,
    failures: u32,
    timer: Option<TimeoutHandle>,
}

impl Reconnecting {
    /// The connection, while there is one.
    pub fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }

    /// Holds a new connection; `None` is one that the browser refused.
    pub fn hold(&mut self, socket: Option<Socket>) {
        self.close();
        self.socket = socket;
    }

    /// Closes the connection and opens none until it is asked for.
    pub fn close(&mut self) {
        self.timer.take().inspect(TimeoutHandle::clear);
        self.socket = None;
    }

    /// Something came: the next failure is the first again.
    pub fn works(&mut self) {
        self.failures = 0;
    }

    /// Connects later.
    pub fn connect_later(&mut self, connect: impl FnOnce() + 'static) {
        self.close();
        let wait = delay_ms(self.failures, false, js_sys::Math::random());
        self.failures = self.failures.saturating_add(1);
        let wait = Duration::from_secs_f64(wait / 1000.0);
        self.timer = set_timeout_with_handle(connect, wait).ok();
    }
}

impl Drop for Reconnecting {
    fn drop(&mut self) {
        self.timer.take().inspect(TimeoutHandle::clear);
    }
}

/// A connection.
pub struct Socket {
    raw: WebSocket,
    _event: Closure<dyn FnMut(Event)>,
}

impl Socket {
    /// Opens one at an app-local path; `None` where the browser refuses.
    pub fn open(path: &str, heard: impl Fn(Heard) + 'static) -> Option<Self> {
        let raw = WebSocket::new(&browser::socket_href(path)).ok()?;
        let event = Closure::<dyn FnMut(Event)>::new(move |event: Event| {
            heard(match (event.dyn_ref::<MessageEvent>(), event.dyn_ref::<CloseEvent>()) {
                // Text frames only, by the protocol.
                (Some(message), _) => Heard::Text(message.data().as_string().unwrap_or_default()),
                (_, Some(close)) => Heard::Closed(close.code()),
                (None, None) => Heard::Open,
            });
        });
        let handler = Some(event.as_ref().unchecked_ref());
        raw.set_onopen(handler);
        raw.set_onmessage(handler);
        raw.set_onclose(handler);
        Some(Self { raw, _event: event })
    }

    /// Sends a text; false where the socket is not open yet, or no more.
    pub fn send(&self, text: &str) -> bool {
        // Asked first: the browser complains in its console of a text for a closing socket.
        self.raw.ready_state() == WebSocket::OPEN && self.raw.send_with_str(text).is_ok()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.raw.set_onmessage(None);
        self.raw.set_onclose(None);
        self.raw.set_onopen(None);
        if self.raw.ready_state() == WebSocket::CONNECTING {
            // Closing now would make the browser complain in its console.
            let raw = self.raw.clone();
            let close = Closure::once_into_js(move || drop(raw.close()));
            self.raw.set_onopen(Some(close.unchecked_ref()));
        } else {
            let _ = self.raw.close(); // closed already: fine
        }
    }
}
