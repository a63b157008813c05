//! A list of rows by key. A row stays itself, in the document and for the focus, as long as its
//! key is in the list; as few rows as possible are moved.

use super::tree::{self, State};
use super::{AnyView, IntoView, Node};
use crate::parts::reactive::Cached;
use leptos::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;
use web_sys::{Node as DomNode, Text};

pub(super) struct Keyed {
    keys: Cached<Vec<String>>,
    row: Box<dyn Fn(String) -> AnyView>,
}

struct Row {
    key: String,
    owner: Owner,
    state: State,
}

type Slot = Rc<RefCell<Vec<Row>>>;

pub(super) struct Rows {
    slot: Slot,
    /// Stands after the rows.
    end: Text,
    _effect: RenderEffect<()>,
}

/// A list of rows by key, of which only what changed is touched.
pub fn keyed<V: IntoView + 'static>(
    keys: Cached<Vec<String>>,
    row: impl Fn(String) -> V + 'static,
) -> AnyView {
    AnyView::new(Node::Keyed(Keyed { keys, row: Box::new(move |key| row(key).into_view()) }))
}

pub(super) struct Before(Slot, Text);

pub(super) fn build(keyed: Keyed, before: Option<Before>) -> Rows {
    // Rows outlive the run of the effect that made them.
    let parent = Owner::current().unwrap_or_default();
    let mut is_first = before.is_some();
    let Before(slot, end) = before.unwrap_or_else(|| Before(Rc::default(), tree::marker()));
    let (rows, last) = (Rc::clone(&slot), end.clone());
    let Keyed { keys, row } = keyed;
    let effect = RenderEffect::new(move |_| {
        let keys = keys.get();
        let before = std::mem::take(&mut *rows.borrow_mut());
        // Rows of a list that stood here before have lost their owner: they are made again, in
        // place.
        let again = std::mem::take(&mut is_first);
        let now = leptos::prelude::untrack(|| arrange(before, keys, &*row, &parent, &last, again));
        rows.replace(now);
    });
    Rows { slot, end, _effect: effect }
}

fn arrange(
    mut before: Vec<Row>,
    keys: Vec<String>,
    make: &dyn Fn(String) -> AnyView,
    parent: &Owner,
    end: &DomNode,
    again: bool,
) -> Vec<Row> {
    if !again
        && before.len() == keys.len()
        && before.iter().zip(&keys).all(|(row, key)| row.key == *key)
    {
        return before;
    }
    // Where what is there has to go to, in the order in which it stands.
    let mut goes: Vec<usize> = Vec::with_capacity(before.len());
    before.retain(|row| {
        let near = goes.last().map_or(0, |last| last + 1);
        let mut places = (near..keys.len()).chain(0..near.min(keys.len()));
        let place = places.find(|at| keys.get(*at) == Some(&row.key) && !goes.contains(at));
        match place {
            Some(place) => goes.push(place),
            None => row.state.unmount(),
        }
        place.is_some()
    });
    let stay = crate::model::order::longest_rising(&goes);
    let mut found: Vec<Option<(Row, bool)>> = keys.iter().map(|_| None).collect();
    for ((row, to), stays) in before.into_iter().zip(goes).zip(stay) {
        if let Some(place) = found.get_mut(to) {
            *place = Some((row, stays));
        }
    }
    let mut now: Vec<Row> = Vec::with_capacity(keys.len());
    let mut moved = Vec::with_capacity(keys.len());
    for (key, found) in keys.into_iter().zip(found) {
        let (row, stays) = match found {
            Some((mut row, stays)) => {
                if again {
                    row.owner = parent.with(Owner::new);
                    row.owner.with(|| tree::rebuild(&mut row.state, make(row.key.clone())));
                }
                (row, stays)
            }
            None => {
                let owner = parent.with(Owner::new);
                let state = owner.with(|| tree::build(make(key.clone())));
                (Row { key, owner, state }, false)
            }
        };
        now.push(row);
        moved.push(!stays);
    }
    if let Some(into) = end.parent_node() {
        let mut next = end.clone();
        for (row, moved) in now.iter().zip(moved).rev() {
            if moved {
                row.state.mount(&into, Some(&next));
            }
            next = row.state.first().unwrap_or(next);
        }
    }
    now
}

impl Rows {
    /// The rows, for the list that takes their place.
    pub(super) fn take(&mut self) -> Option<Before> {
        Some(Before(Rc::clone(&self.slot), self.end.clone()))
    }

    pub(super) fn first(&self) -> Option<DomNode> {
        match self.slot.borrow().first() {
            Some(row) => row.state.first(),
            None => Some((**self.end).clone()),
        }
    }

    pub(super) fn each(&self, with: &mut dyn FnMut(&DomNode)) {
        self.slot.borrow().iter().for_each(|row| row.state.each(with));
        with(&self.end);
    }
}
