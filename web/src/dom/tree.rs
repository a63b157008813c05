//! Views as nodes of the document: built, put in place, patched where they stand, taken away.

use super::list::{self, Rows};
use super::value::{self, Kept};
use super::{AnyView, Content, Node};
use crate::parts::reactive::owned;
use leptos::prelude::*;
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use web_sys::{Element, Node as DomNode, Text};

/// What of a view is in the document. There is always at least one node, so that its place is
/// known.
pub(super) enum State {
    Text(Text, Cow<'static, str>),
    Element(Box<Built>),
    /// The node stands after them.
    Many(Vec<State>, Text),
    Dynamic(Slot, #[expect(dead_code, reason = "held, so that it goes on")] RenderEffect<()>),
    Keyed(Rows),
}

pub(super) struct Built {
    node: Element,
    tag: &'static str,
    attributes: Vec<Kept>,
    children: Vec<State>,
}

type Slot = Rc<RefCell<Option<State>>>;

/// Puts the view at the end of the document's body, for good.
pub fn mount(make: impl FnOnce() -> AnyView) {
    let _ = any_spawner::Executor::init_wasm_bindgen(); // there already: fine
    let owner = Owner::new();
    let state = owner.with(|| build(make()));
    if let Some(body) = document().body() {
        state.mount(&body, None);
    }
    std::mem::forget((owner, state));
}

pub(super) fn marker() -> Text {
    document().create_text_node("")
}

pub(super) fn build(view: AnyView) -> State {
    match view.0.map(|node| *node) {
        None => State::Many(Vec::new(), marker()),
        Some(Node::Text(text)) => State::Text(document().create_text_node(&text), text),
        Some(Node::Element(content)) => State::Element(Box::new(element(content))),
        Some(Node::Many(views)) => State::Many(views.into_iter().map(build).collect(), marker()),
        Some(Node::Dynamic(make)) => dynamic(make, None),
        Some(Node::Keyed(keyed)) => State::Keyed(list::build(keyed, None)),
    }
}

const SVG: &str = "http://www.w3.org/2000/svg";

#[expect(clippy::expect_used, reason = "only an illegal name is refused, and these are ours")]
fn element(content: Content) -> Built {
    let node = match content.tag {
        tag @ ("svg" | "use" | "path" | "rect" | "g") => {
            document().create_element_ns(Some(SVG), tag)
        }
        tag => document().create_element(tag),
    };
    let node = node.expect("a legal name");
    // Children first, as a select has its options before it is given its value.
    let children: Vec<_> = content.children.into_iter().map(build).collect();
    for child in &children {
        child.mount(&node, None);
    }
    let attributes = value::patch(&node, Vec::new(), content.attributes);
    Built { node, tag: content.tag, attributes, children }
}

fn dynamic(mut make: Box<dyn FnMut() -> AnyView>, before: Option<State>) -> State {
    let slot = Rc::new(RefCell::new(before));
    let into = Rc::clone(&slot);
    let is_owned = owned();
    let effect = RenderEffect::new(move |_| {
        // What it is made from goes with the owner, a moment before the view does.
        if !is_owned() {
            return;
        }
        let view = make();
        let state = into.borrow_mut().take();
        let state = match state {
            Some(mut state) => {
                rebuild(&mut state, view);
                state
            }
            None => build(view),
        };
        into.replace(Some(state));
    });
    State::Dynamic(slot, effect)
}

/// Makes the document show the view where another one stands, touching only what differs.
pub(super) fn rebuild(state: &mut State, view: AnyView) {
    match (&mut *state, view.0.map(|node| *node)) {
        (State::Text(node, shown), Some(Node::Text(text))) => {
            if *shown != text {
                node.set_data(&text);
                *shown = text;
            }
        }
        (State::Element(built), Some(Node::Element(content))) if built.tag == content.tag => {
            let Built { node, attributes, children, .. } = &mut **built;
            // Listeners first: taking away a child with the focus is heard.
            *attributes = value::patch(node, std::mem::take(attributes), content.attributes);
            all(children, content.children, node, None);
        }
        (State::Many(states, end), Some(Node::Many(views))) => match end.parent_node() {
            Some(parent) => all(states, views, &parent, Some(end)),
            None => *state = build(AnyView::many(views)),
        },
        (State::Many(states, _), None) if states.is_empty() => {}
        (State::Dynamic(slot, _), Some(Node::Dynamic(make))) => {
            let before = slot.borrow_mut().take();
            *state = dynamic(make, before);
        }
        (State::Keyed(rows), Some(Node::Keyed(keyed))) => {
            let before = rows.take();
            *state = State::Keyed(list::build(keyed, before));
        }
        (_, node) => {
            let new = build(AnyView(node.map(Box::new)));
            if let Some(first) = state.first()
                && let Some(parent) = first.parent_node()
            {
                new.mount(&parent, Some(&first));
            }
            state.unmount();
            *state = new;
        }
    }
}

fn all(states: &mut Vec<State>, views: Vec<AnyView>, parent: &DomNode, end: Option<&DomNode>) {
    for gone in states.drain(views.len().min(states.len())..) {
        gone.unmount();
    }
    let mut views = views.into_iter();
    for (state, view) in states.iter_mut().zip(&mut views) {
        rebuild(state, view);
    }
    for view in views {
        let state = build(view);
        state.mount(parent, end);
        states.push(state);
    }
}

impl State {
    /// The first of its nodes; none only while it is being made.
    pub(super) fn first(&self) -> Option<DomNode> {
        match self {
            Self::Text(node, _) => Some((**node).clone().into()),
            Self::Element(built) => Some((*built.node).clone()),
            Self::Many(states, end) => match states.first() {
                Some(state) => state.first(),
                None => Some((**end).clone().into()),
            },
            Self::Dynamic(slot, _) => slot.borrow().as_ref().and_then(Self::first),
            Self::Keyed(rows) => rows.first(),
        }
    }

    pub(super) fn mount(&self, parent: &DomNode, before: Option<&DomNode>) {
        self.each(&mut |node| {
            // It is no ancestor of its parent, and `before` is a child of it.
            let _ = parent.insert_before(node, before);
        });
    }

    pub(super) fn unmount(&self) {
        self.each(&mut |node| {
            if let Some(parent) = node.parent_node() {
                let _ = parent.remove_child(node); // just found to be its parent
            }
        });
    }

    /// All nodes at the top, in order.
    pub(super) fn each(&self, with: &mut dyn FnMut(&DomNode)) {
        match self {
            Self::Text(node, _) => with(node),
            Self::Element(built) => with(&built.node),
            Self::Many(states, end) => {
                states.iter().for_each(|state| state.each(with));
                with(end);
            }
            Self::Dynamic(slot, _) => {
                if let Some(state) = &*slot.borrow() {
                    state.each(with);
                }
            }
            Self::Keyed(rows) => rows.each(with),
        }
    }
}
