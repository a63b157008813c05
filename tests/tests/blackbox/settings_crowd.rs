//! Two hundred edits by the page, by commands and by hand at once (H122, H123).

use crate::harness::{Dice, Server, World};
use crate::settings::{entries, put, text, write};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use tokio::sync::RwLock;

/// Edits of all three together.
const EDITS: usize = 200;

/// Keys that any of the three may change, with what they are at first.
///
/// The last two need a restart of the service.
const KEYS: [(&str, &str, u64); 11] = [
    ("claude", "startup_grace_seconds", 60),
    ("claude", "stop_grace_seconds", 5),
    ("claude", "agents_json_poll_interval_seconds", 30),
    ("claude", "resume_recap_max_chars", 8000),
    ("instance_defaults", "capacity", 32),
    ("instance_defaults", "max_bridges", 20),
    ("restart", "max_crashes", 5),
    ("ceilings", "processes", 512),
    ("logs", "retention_max_files", 50),
    ("hosted", "spawn_timeout_seconds", 10),
    ("clone", "timeout_seconds", 600),
];

/// Who makes an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Page,
    Command,
    Hand,
}

/// What is known while all three work.
struct Crowd<'w> {
    world: &'w World,
    server: &'w Server<'w>,
    /// What each key was set to last, and by whom.
    values: RefCell<BTreeMap<String, (u64, Who)>>,
    begun: Cell<usize>,
    conflicts: Cell<usize>,
    /// Held while an editor looks whether the file is the one it read, and writes it.
    ///
    /// Nothing does both in one step, so nobody else may write between the two.
    editor: RwLock<()>,
}

impl Crowd<'_> {
    async fn work(&self, who: Who, seed: u64) {
        let mut dice = Dice::new(seed);
        loop {
            let number = self.begun.get();
            if number == EDITS {
                return;
            }
            self.begun.set(number + 1);
            // The second list of settings is not the page's without a password.
            let keys = if who == Who::Page { &KEYS[..KEYS.len() - 1] } else { &KEYS[..] };
            let &(section, leaf, _) = dice.pick(keys);
            // No value is ever written twice, so every edit has an effect.
            let value = 700 + u64::try_from(number).unwrap();
            let value = if leaf == "stop_grace_seconds" { 1 + value % 100 } else { value };
            match who {
                Who::Page => self.by_page(&format!("{section}.{leaf}"), value).await,
                Who::Command => self.by_command(&format!("{section}.{leaf}"), value).await,
                Who::Hand => self.by_hand(section, leaf, value).await,
            }
        }
    }

    fn note(&self, key: &str, value: u64, who: Who) {
        self.values.borrow_mut().insert(key.to_owned(), (value, who));
    }

    /// Entries about edits of a key by hand.
    fn told_by_hand(&self, key: &str) -> usize {
        let is_one = |entry: &&Value| {
            entry["actor"] == "file" && entry["keys"].as_array().unwrap().contains(&json!(key))
        };
        entries(self.world).iter().filter(is_one).count()
    }

    async fn by_page(&self, key: &str, value: u64) {
        loop {
            let read = self.server.client.get("/api/config").await.expect(200).json();
            // An editor was just writing the file: what is there has no name yet.
            if read["hash"].is_null() {
                continue;
            }
            let body = json!({ "edits": { key: value }, "hash": read["hash"] });
            let others = self.editor.read().await;
            let reply = put(self.server, "/api/config", &body).await;
            if reply.status == 409 {
                assert_eq!(reply.refused(409), "stale");
                self.conflicts.set(self.conflicts.get() + 1);
                continue;
            }
            reply.expect(200);
            self.note(key, value, Who::Page);
            drop(others);
            return;
        }
    }

    async fn by_command(&self, key: &str, value: u64) {
        let others = self.editor.read().await;
        self.world.cli(&["config", "set", key, &value.to_string()]).await.ok();
        self.note(key, value, Who::Command);
        drop(others);
    }

    async fn by_hand(&self, section: &str, leaf: &str, value: u64) {
        let key = format!("{section}.{leaf}");
        let told_before;
        loop {
            let before = text(self.world);
            tokio::task::yield_now().await; // a person thinks
            let alone = self.editor.write().await;
            if text(self.world) != before {
                self.conflicts.set(self.conflicts.get() + 1);
                continue;
            }
            let line = before.lines().find(|line| line.starts_with(&format!("  {leaf}: ")));
            let (_, comment) = line.expect("the key").split_once("  #").expect("its comment");
            let next = before.replace(line.unwrap(), &format!("  {leaf}: {value}  #{comment}"));
            told_before = self.told_by_hand(&key);
            write(self.world, &next);
            self.note(&key, value, Who::Hand);
            drop(alone);
            break;
        }
        kill_process(Pid::from_raw(self.server.pid).unwrap(), Signal::HUP).unwrap();
        // The log has it, or somebody has set the key again before the service looked.
        let is_told = || {
            let is_over = self.values.borrow()[&key] != (value, Who::Hand);
            (is_over || self.told_by_hand(&key) > told_before).then_some(())
        };
        self.world.until("the entry of an edit by hand", is_told).await;
    }
}

#[tokio::test]
async fn h122_h123_two_hundred_edits_at_once_lose_nothing_and_are_all_told() {
    let world = World::new();
    let mut more = String::new();
    let sections: BTreeSet<&str> = KEYS.iter().map(|(section, ..)| *section).collect();
    // The section of the agent is there already.
    for section in ["claude"].into_iter().chain(sections.into_iter().filter(|s| *s != "claude")) {
        if section != "claude" {
            writeln!(more, "{section}:").unwrap();
        }
        for (_, leaf, value) in KEYS.iter().filter(|(of, ..)| *of == section) {
            writeln!(more, "  # why {leaf}\n  {leaf}: {value}  # note on {leaf}").unwrap();
        }
    }
    more.push_str("config_write:\n  enabled: true\n# the end\n");
    crate::settings::by_hand(&world, &more);
    let order = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(": ").next().unwrap_or_default().to_owned()).collect()
    };
    let first = order(&text(&world));
    let server = world.serve().await;
    let crowd = Crowd {
        world: &world,
        server: &server,
        values: RefCell::default(),
        begun: Cell::new(0),
        conflicts: Cell::new(0),
        editor: RwLock::new(()),
    };
    tokio::join!(
        crowd.work(Who::Page, 1),
        crowd.work(Who::Page, 2),
        crowd.work(Who::Command, 3),
        crowd.work(Who::Hand, 4),
    );
    eprintln!("{} conflicts were told", crowd.conflicts.get());

    let after = text(&world);
    assert_eq!(order(&after), first, "comments, lines and their order stay");
    for (_, leaf, _) in KEYS {
        assert!(after.contains(&format!("  # note on {leaf}\n")), "{leaf}: {after}");
    }
    let values = crowd.values.borrow().clone();
    assert_eq!(values.len(), KEYS.len(), "every key was changed");
    let shown = server.client.get("/api/config").await.expect(200).json();
    for (key, (value, who)) in values.iter() {
        let leaf = key.split_once('.').unwrap().1;
        assert!(after.contains(&format!("  {leaf}: {value}  #")), "{key} {value} {who:?}: {after}");
        if let Some(now) = shown["fields"][key].as_f64() {
            assert!((now - f64::from(u32::try_from(*value).unwrap())).abs() < 0.1, "{key}: {now}");
        }
    }
    world.cli(&["config", "check"]).await.ok();
    // Each save of the page and each command has its entry, with the names of keys only.
    let log = entries(&world);
    let of = |actor: &dyn Fn(&str) -> bool| {
        log.iter().filter(|entry| actor(entry["actor"].as_str().unwrap())).count()
    };
    let (page, command, hand) =
        (of(&|one| one == "admin"), of(&|one| one.starts_with("cli:")), of(&|one| one == "file"));
    eprintln!("{page} entries of the page, {command} of commands, {hand} by hand");
    assert!(page > 0 && command > 0 && hand > 0, "all three took part");
    let is_last =
        |entry: &&Value, key: &str| entry["keys"].as_array().unwrap().iter().any(|one| one == key);
    for (key, (_, who)) in values.iter() {
        let last = log.iter().rev().find(|entry| is_last(entry, key)).expect("an entry");
        let actor = last["actor"].as_str().unwrap();
        let expected = match who {
            Who::Page => actor == "admin",
            Who::Command => actor.starts_with("cli:"),
            Who::Hand => actor == "file",
        };
        assert!(expected, "{key}: {who:?} was last, and the log says {actor}");
    }
    server.stop().await;
}
