//! The HTTP door: routes, guards, sockets, the page.
