//! A socket with one handler.
//!
//! Dropping it closes the socket, and the handler hears nothing more.

use crate::browser;
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

    /// Sends a text; one that comes too late is lost with the socket.
    pub fn send(&self, text: &str) {
        // Asked first: the browser complains in its console of a text for a closing socket.
        if self.raw.ready_state() == WebSocket::OPEN {
            let _ = self.raw.send_with_str(text);
        }
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
