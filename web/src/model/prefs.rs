//! The preferences document.
//!
//! It is read from the service, changed here and stored there.
//!
//! The document is the service's; members this page does not know are kept.

use crate::model::wire;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use svc_shared::internal::UiPrefs;

/// Theme: `light`, `dark`, anything else follows the system.
pub const THEME: &str = "theme";
/// Density: `compact`, anything else is comfortable.
pub const DENSITY: &str = "density";
/// Zone of times: `host`, `utc`, anything else is that of the browser.
pub const ZONE: &str = "zone";
/// Changed lines: `side` is beside each other, anything else is below.
pub const DIFF: &str = "diff";
/// Names of favourite projects.
pub const FAVOURITES: &str = "favourites";
/// Names of cards that are put away, and of first steps that were taken.
pub const DISMISSED: &str = "dismissed";
const SHORTCUTS: &str = "shortcuts";

/// The choices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prefs(UiPrefs);

/// One change of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Another value of a member; empty is the default.
    Word(&'static str, &'static str),
    /// Something comes into a list, or leaves it.
    Item(&'static str, String, bool),
    /// Single-letter keys do something, or nothing.
    Letters(bool),
    /// Another key for what a letter does; the letter itself takes the change back.
    Key(String, String),
}

impl From<UiPrefs> for Prefs {
    fn from(kept: UiPrefs) -> Self {
        Self(kept)
    }
}

impl Prefs {
    /// As it is sent and kept.
    #[must_use]
    pub fn text(&self) -> String {
        wire::written(self)
    }

    /// A word; empty for the default.
    #[must_use]
    pub fn word(&self, member: &str) -> &str {
        self.0.prefs.get(member).and_then(Value::as_str).unwrap_or_default()
    }

    /// The items of a list.
    pub fn items(&self, list: &str) -> impl Iterator<Item = &str> {
        let items = self.0.prefs.get(list).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Whether a list holds this.
    #[must_use]
    pub fn has(&self, list: &str, item: &str) -> bool {
        self.items(list).any(|one| one == item)
    }

    fn shortcuts(&self) -> Option<&Map<String, Value>> {
        self.0.prefs.get(SHORTCUTS)?.as_object()
    }

    fn keys(&self) -> Option<&Map<String, Value>> {
        self.shortcuts()?.get("keys")?.as_object()
    }

    /// Whether single letters do something.
    #[must_use]
    pub fn are_letters_on(&self) -> bool {
        let on = self.shortcuts().and_then(|shortcuts| shortcuts.get("on"));
        on.and_then(Value::as_bool).unwrap_or(true)
    }

    /// The key that does what `letter` does unless somebody changed it.
    #[must_use]
    pub fn key_for<'a>(&'a self, letter: &'a str) -> &'a str {
        let mine = self.keys().and_then(|keys| keys.get(letter)).and_then(Value::as_str);
        mine.filter(|key| !key.is_empty()).unwrap_or(letter)
    }

    /// The letter whose action a pressed key runs.
    ///
    /// It is the key itself unless the user changed that, and empty when the key does nothing.
    #[must_use]
    pub fn letter_of<'a>(&'a self, pressed: &'a str) -> &'a str {
        let taken = self.keys().into_iter().flatten();
        for (letter, key) in taken {
            if key.as_str() == Some(pressed) {
                return letter;
            }
        }
        if self.key_for(pressed) == pressed { pressed } else { "" }
    }

    /// Makes a change.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Word(member, "") => drop(self.0.prefs.remove(*member)),
            Change::Word(member, word) => self.put(member, Value::from(*word)),
            Change::Item(list, item, on) => {
                let mut items: Vec<Value> =
                    self.items(list).filter(|one| one != item).map(Value::from).collect();
                if *on {
                    items.push(Value::from(item.as_str()));
                }
                self.put(list, Value::Array(items));
            }
            Change::Letters(on) => self.put_shortcut("on", Value::Bool(*on)),
            Change::Key(letter, key) => {
                let mut keys = self.keys().cloned().unwrap_or_default();
                if letter == key {
                    keys.remove(letter);
                } else {
                    keys.insert(letter.clone(), Value::from(key.as_str()));
                }
                self.put_shortcut("keys", Value::Object(keys));
            }
        }
    }

    fn put(&mut self, member: &str, value: Value) {
        self.0.prefs.insert(member.to_owned(), value);
    }

    fn put_shortcut(&mut self, member: &str, value: Value) {
        let mut shortcuts = self.shortcuts().cloned().unwrap_or_default();
        shortcuts.insert(member.to_owned(), value);
        self.put(SHORTCUTS, Value::Object(shortcuts));
    }

    /// The changes that are not kept yet, on what somebody else made of it meanwhile.
    #[must_use]
    pub fn with(mut self, changes: &[Change]) -> Self {
        changes.iter().for_each(|change| self.apply(change));
        self
    }

    /// The service has kept it under the next number.
    pub fn kept(&mut self, rev: u64) {
        self.0.rev = rev;
    }

    /// Counts what the service kept.
    #[must_use]
    pub fn rev(&self) -> u64 {
        self.0.rev
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::wire::read;
    use serde_json::json;

    fn of(members: Value) -> Prefs {
        read(&json!({ "prefs": members, "rev": 3 }).to_string()).unwrap()
    }

    #[test]
    fn what_a_newer_page_chose_survives_a_change() {
        let mut prefs = of(json!({"theme": "dark", "moon": [1, {"a": null}]}));
        prefs.apply(&Change::Word(THEME, ""));
        prefs.apply(&Change::Item(FAVOURITES, "api".into(), true));
        let kept: Value = serde_json::from_str(&prefs.text()).unwrap();
        let expected = json!({"moon": [1, {"a": null}], "favourites": ["api"]});
        assert_eq!(kept, json!({"prefs": expected, "rev": 3}));
        assert_eq!(read::<Prefs>(&prefs.text()), Ok(prefs));
    }

    #[test]
    fn two_devices_keep_each_others_changes() {
        let mine = [Change::Item(FAVOURITES, "web".into(), true), Change::Word(ZONE, "utc")];
        let theirs = of(json!({"favourites": ["api"], "zone": "host", "density": "compact"}));
        let both = theirs.with(&mine);
        assert_eq!(both.items(FAVOURITES).collect::<Vec<_>>(), ["api", "web"]);
        assert_eq!((both.word(ZONE), both.word(DENSITY), both.rev()), ("utc", "compact", 3));
        let gone = both.with(&[Change::Item(FAVOURITES, "api".into(), false)]);
        assert!(!gone.has(FAVOURITES, "api") && gone.has(FAVOURITES, "web"));
    }

    #[test]
    fn a_changed_key_does_the_work_and_the_letter_nothing() {
        let mut prefs = Prefs::default();
        assert!(prefs.are_letters_on());
        assert_eq!((prefs.letter_of("l"), prefs.key_for("l")), ("l", "l"));
        prefs.apply(&Change::Key("l".into(), "n".into()));
        assert_eq!((prefs.letter_of("n"), prefs.letter_of("l")), ("l", ""));
        assert_eq!(prefs.key_for("l"), "n");
        prefs.apply(&Change::Key("l".into(), "l".into()));
        assert_eq!((prefs.letter_of("n"), prefs.letter_of("l")), ("n", "l"));
        prefs.apply(&Change::Letters(false));
        assert!(!prefs.are_letters_on());
    }

    #[test]
    fn what_is_no_document_is_refused_and_odd_members_count_as_absent() {
        for text in ["null", "{}", r#"{"prefs":[],"rev":1}"#, r#"{"prefs":{},"rev":-1}"#] {
            assert_eq!(read::<Prefs>(text), Err(wire::Unreadable), "{text}");
        }
        let odd = of(json!({"theme": 1, "favourites": "api", "shortcuts": {"on": 1, "keys": []}}));
        assert_eq!((odd.word(THEME), odd.items(FAVOURITES).count()), ("", 0));
        assert!(odd.are_letters_on());
    }
}
