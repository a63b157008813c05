//! `plugin …`: marketplaces that are local directories, and their plugins.
//!
//! Texts and exit codes are those of agent 2.1.197. Anything that needs a network fails as it does
//! without one.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::console::print;
use super::debug_log::timestamp;
use super::double::Double;
use super::failure::Failure;
use super::mcp::{read, write};

/// What a command was given besides its own words.
struct Given<'a> {
    words: Vec<&'a str>,
    scope: &'a str,
    json: bool,
}

impl<'a> Given<'a> {
    fn parse(words: &[&'a str]) -> Result<Self, Failure> {
        let mut given = Self { words: Vec::new(), scope: "user", json: false };
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "--scope" | "-s" => {
                    given.scope = rest
                        .next()
                        .filter(|scope| ["user", "project", "local"].contains(scope))
                        .ok_or_else(|| {
                            Failure::agent(
                                "error: option '-s, --scope <scope>' argument is invalid. Allowed \
                                 choices are user, project, local.",
                            )
                        })?;
                }
                "--json" => given.json = true,
                "-y" | "--yes" | "--prune" | "--keep-data" => {}
                odd if odd.starts_with('-') => {
                    return Err(Failure::agent(format!("error: unknown option '{odd}'")));
                }
                word => given.words.push(word),
            }
        }
        Ok(given)
    }

    fn first(&self, name: &str) -> Result<&'a str, Failure> {
        self.words
            .first()
            .copied()
            .ok_or_else(|| Failure::agent(format!("error: missing required argument '{name}'")))
    }
}

/// Runs one `plugin` command.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let words: Vec<&str> = double.args.iter().skip(1).map(String::as_str).collect();
    let store = Store { double };
    let rest = |from: usize| Given::parse(words.get(from..).unwrap_or_default());
    match (words.first().copied(), words.get(1).copied()) {
        (Some("marketplace"), Some("add")) => store.add_marketplace(&rest(2)?),
        (Some("marketplace"), Some("remove" | "rm")) => store.remove_marketplace(&rest(2)?),
        (Some("marketplace"), Some("list")) => store.list_marketplaces(&rest(2)?),
        (Some("marketplace"), Some("update")) => store.update_marketplaces(&rest(2)?),
        (Some("install" | "i"), _) => store.install(&rest(1)?),
        (Some("uninstall" | "remove"), _) => store.uninstall(&rest(1)?),
        (Some("enable"), _) => store.switch(&rest(1)?, true),
        (Some("disable"), _) => store.switch(&rest(1)?, false),
        (Some("update"), _) => store.update(&rest(1)?),
        (Some("list"), _) => store.list(&rest(1)?),
        (Some("details"), _) => store.details(&rest(1)?),
        (None | Some("--help" | "-h" | "marketplace"), _) => {
            print(
                "Usage: claude plugin|plugins [options] [command]\n\nManage Claude Code plugins\n",
            );
            Ok(u8::from(words.is_empty()))
        }
        (Some(odd), _) => Err(Failure::agent(format!("error: unknown command '{odd}'"))),
    }
}

struct Store<'a> {
    double: &'a Double,
}

impl Store<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.double.home.dir().join("plugins").join(name)
    }

    fn settings(&self, scope: &str) -> PathBuf {
        match scope {
            "project" => self.double.cwd.join(".claude/settings.json"),
            "local" => self.double.cwd.join(".claude/settings.local.json"),
            _ => self.double.home.dir().join("settings.json"),
        }
    }

    fn marketplaces(&self) -> Result<Map<String, Value>, Failure> {
        Ok(object(read(&self.file("known_marketplaces.json"))?))
    }

    fn installed(&self) -> Result<Map<String, Value>, Failure> {
        let root = read(&self.file("installed_plugins.json"))?;
        Ok(object(root.get("plugins").cloned().unwrap_or_default()))
    }

    fn write_installed(&self, plugins: Map<String, Value>) -> Result<(), Failure> {
        let root = json!({ "version": 2, "plugins": plugins });
        write(&self.file("installed_plugins.json"), &root)
    }

    /// The plugin a marketplace offers under this name.
    fn offered(&self, id: &str) -> Result<Option<(PathBuf, Value)>, Failure> {
        let (name, marketplace) = id.split_once('@').unwrap_or((id, ""));
        let known = self.marketplaces()?;
        let Some(path) = known.get(marketplace).and_then(|m| m.get("installLocation")) else {
            return Ok(None);
        };
        let dir = PathBuf::from(path.as_str().unwrap_or_default());
        let index = read(&dir.join(".claude-plugin/marketplace.json"))?;
        let offers = index.get("plugins").and_then(Value::as_array).cloned().unwrap_or_default();
        let offer = offers.into_iter().find(|offer| offer.get("name") == Some(&json!(name)));
        Ok(offer.map(|offer| (dir, offer)))
    }

    fn add_marketplace(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let source = given.first("source")?;
        if !source.starts_with(['.', '/']) {
            print("Adding marketplace…");
            return Err(Failure::agent(format!(
                "✘ Failed to add marketplace: could not clone {source}: Could not resolve host: \
                 github.com"
            )));
        }
        let dir = self.double.cwd.join(source);
        let Ok(dir) = dir.canonicalize() else {
            let dir = lexical(&dir);
            return Err(Failure::agent(format!("✘ Path does not exist: {}", dir.display())));
        };
        let index = read(&dir.join(".claude-plugin/marketplace.json"))?;
        let Some(name) = index.get("name").and_then(Value::as_str) else {
            return Err(Failure::agent(format!(
                "✘ Failed to add marketplace: {} holds no .claude-plugin/marketplace.json with a \
                 name",
                dir.display()
            )));
        };
        let mut known = self.marketplaces()?;
        let again = known.contains_key(name);
        known.insert(
            name.to_owned(),
            json!({
                "source": { "source": "directory", "path": dir }, "installLocation": dir,
                "lastUpdated": timestamp(),
            }),
        );
        write(&self.file("known_marketplaces.json"), &Value::Object(known))?;
        self.set(
            given.scope,
            "extraKnownMarketplaces",
            name,
            Some(json!({
                "source": { "source": "directory", "path": dir },
            })),
        )?;
        let scope = given.scope;
        print(&if again {
            format!(
                "Adding marketplace…✔ Marketplace '{name}' already on disk — declared in {scope} settings\n"
            )
        } else {
            format!(
                "Adding marketplace…✔ Successfully added marketplace: {name} (declared in {scope} settings)\n"
            )
        });
        Ok(0)
    }

    fn remove_marketplace(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let name = given.first("name")?;
        let mut known = self.marketplaces()?;
        if known.remove(name).is_none() {
            return Err(Failure::agent(format!(
                "✘ Failed to remove marketplace: Marketplace '{name}' not found"
            )));
        }
        write(&self.file("known_marketplaces.json"), &Value::Object(known))?;
        self.set(given.scope, "extraKnownMarketplaces", name, None)?;
        let mut plugins = self.installed()?;
        plugins.retain(|id, _| id.split_once('@').is_none_or(|(_, from)| from != name));
        self.write_installed(plugins)?;
        print(&format!("✔ Successfully removed marketplace: {name}\n"));
        Ok(0)
    }

    fn list_marketplaces(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let known = self.marketplaces()?;
        if given.json {
            let all: Vec<Value> = known
                .iter()
                .map(|(name, entry)| {
                    json!({
                        "name": name, "source": "directory", "path": entry.get("installLocation"),
                        "installLocation": entry.get("installLocation"),
                    })
                })
                .collect();
            print(&format!("{:#}\n", Value::Array(all)));
        } else if known.is_empty() {
            print("No marketplaces configured\n");
        } else {
            let lines: String = known.keys().map(|name| format!("  ❯ {name}\n")).collect();
            print(&format!("Configured marketplaces:\n\n{lines}"));
        }
        Ok(0)
    }

    fn update_marketplaces(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let known = self.marketplaces()?;
        match given.words.first() {
            None if known.is_empty() => print("No marketplaces configured\n"),
            None => print(&format!(
                "Updating {0} marketplace(s)...✔ Successfully updated {0} marketplace(s)\n",
                known.len()
            )),
            Some(name) if known.contains_key(*name) => print(&format!(
                "Updating marketplace: {name}...Validating local marketplace\n✔ Successfully \
                 updated marketplace: {name}\n"
            )),
            Some(name) => {
                print(&format!("Updating marketplace: {name}..."));
                let names: Vec<String> = known.keys().cloned().collect();
                return Err(Failure::agent(format!(
                    "✘ Failed to update marketplace(s): Marketplace '{name}' not found. Available \
                     marketplaces: {}\n",
                    names.join(", ")
                )));
            }
        }
        Ok(0)
    }

    fn install(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let id = given.first("plugin")?;
        let (name, marketplace) = id.split_once('@').unwrap_or((id, ""));
        print(&format!("Installing plugin \"{id}\"..."));
        let Some((_, offer)) = self.offered(id)? else {
            return Err(Failure::agent(format!(
                "✘ Failed to install plugin \"{id}\": Plugin \"{name}\" not found in marketplace \
                 \"{marketplace}\". Your local copy may be out of date — try `claude plugin \
                 marketplace update {marketplace}`.\n"
            )));
        };
        let scope = given.scope;
        let mut plugins = self.installed()?;
        if entry(&plugins, id, scope).is_some() {
            print(&format!("✔ Plugin \"{id}\" is already installed (scope: {scope})\n"));
            return Ok(0);
        }
        let version = offer.get("version").and_then(Value::as_str).unwrap_or("unknown");
        let place = self.file("cache").join(marketplace).join(name).join(version);
        let _ = std::fs::create_dir_all(&place); // its content is the marketplace's
        let now = timestamp();
        let new = json!({
            "scope": scope, "version": version, "installPath": place, "installedAt": now,
            "lastUpdated": now,
        });
        match plugins.entry(id).or_insert(json!([])) {
            Value::Array(entries) => entries.push(new),
            other => *other = json!([new]),
        }
        self.write_installed(plugins)?;
        self.set(scope, "enabledPlugins", id, Some(json!(true)))?;
        print(&format!("✔ Successfully installed plugin: {id} (scope: {scope})\n"));
        Ok(0)
    }

    fn uninstall(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let id = given.first("plugin")?;
        let mut plugins = self.installed()?;
        if entry(&plugins, id, given.scope).is_none() {
            return Err(Failure::agent(format!(
                "✘ Failed to uninstall plugin \"{id}\": Plugin \"{id}\" not found in installed \
                 plugins"
            )));
        }
        if let Some(Value::Array(entries)) = plugins.get_mut(id) {
            entries.retain(|entry| entry.get("scope") != Some(&json!(given.scope)));
        }
        plugins.retain(|_, entries| entries.as_array().is_some_and(|all| !all.is_empty()));
        self.write_installed(plugins)?;
        self.set(given.scope, "enabledPlugins", id, None)?;
        print(&format!(
            "✔ Successfully uninstalled plugin: {} (scope: {})\n",
            short(id),
            given.scope
        ));
        Ok(0)
    }

    /// Agent 2.1.197 switches plugins it has never heard of, too.
    fn switch(&self, given: &Given<'_>, on: bool) -> Result<u8, Failure> {
        let id = given.first("plugin")?;
        let (verb, state) = if on { ("enable", "enabled") } else { ("disable", "disabled") };
        let settings = read(&self.settings(given.scope))?;
        let known = settings.get("enabledPlugins").and_then(|all| all.get(id));
        if known == Some(&json!(on)) {
            return Err(Failure::agent(format!(
                "✘ Failed to {verb} plugin \"{id}\": Plugin \"{id}\" is already {state} at {} scope",
                given.scope
            )));
        }
        self.set(given.scope, "enabledPlugins", id, Some(json!(on)))?;
        print(&format!("✔ Successfully {state} plugin: {} (scope: {})\n", short(id), given.scope));
        Ok(0)
    }

    fn update(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let id = given.first("plugin")?;
        let scope = given.scope;
        print(&format!("Checking for updates for plugin \"{id}\" at {scope} scope…\n"));
        let plugins = self.installed()?;
        let Some(found) = entry(&plugins, id, scope) else {
            return Err(Failure::agent(format!(
                "✘ Failed to update plugin \"{id}\": Plugin \"{}\" not found",
                short(id)
            )));
        };
        let version = found.get("version").and_then(Value::as_str).unwrap_or("unknown");
        print(&format!("✔ {} is already at the latest version ({version}).\n", short(id)));
        Ok(0)
    }

    fn list(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let plugins = self.installed()?;
        let mut all = Vec::new();
        for (id, entries) in &plugins {
            for entry in entries.as_array().into_iter().flatten() {
                let scope = entry.get("scope").and_then(Value::as_str).unwrap_or("user");
                let settings = read(&self.settings(scope))?;
                let enabled = settings.get("enabledPlugins").and_then(|on| on.get(id));
                let mut item = object(entry.clone());
                item.insert("id".into(), json!(id));
                item.insert("enabled".into(), json!(enabled == Some(&json!(true))));
                all.push(Value::Object(item));
            }
        }
        if given.json {
            print(&format!("{:#}\n", Value::Array(all)));
        } else if all.is_empty() {
            print("No plugins installed. Use `claude plugin install` to install a plugin.\n");
        } else {
            let lines: String = plugins.keys().map(|id| format!("  ❯ {id}\n")).collect();
            print(&format!("Installed plugins:\n\n{lines}"));
        }
        Ok(0)
    }

    fn details(&self, given: &Given<'_>) -> Result<u8, Failure> {
        let name = given.first("name")?;
        let plugins = self.installed()?;
        let Some(id) = plugins.keys().find(|id| *id == name || short(id) == name) else {
            return Err(Failure::agent(format!(
                "Plugin \"{name}\" not found. Run `claude plugin list` to see installed plugins, \
                 or pass --plugin-dir <path> to load one from disk."
            )));
        };
        print(&format!(
            "{}\n  Source: {id}\n\nComponent inventory\n  Skills (0)\n  Agents (0)\n  Hooks (0)\n  \
             MCP servers (0)\n\nProjected token cost\n  Always-on:   ~0 tok   added to every \
             session\n",
            short(id)
        ));
        Ok(0)
    }

    /// Sets one entry of an object in the scope's settings; `None` removes it.
    fn set(&self, scope: &str, key: &str, name: &str, value: Option<Value>) -> Result<(), Failure> {
        let file = self.settings(scope);
        let mut root = object(read(&file)?);
        let mut entries = object(root.remove(key).unwrap_or_default());
        match value {
            Some(value) => entries.insert(name.to_owned(), value),
            None => entries.remove(name),
        };
        root.insert(key.to_owned(), Value::Object(entries));
        write(&file, &Value::Object(root))
    }
}

fn entry<'a>(plugins: &'a Map<String, Value>, id: &str, scope: &str) -> Option<&'a Value> {
    let entries = plugins.get(id)?.as_array()?;
    entries.iter().find(|entry| entry.get("scope") == Some(&json!(scope)))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The name in front of the marketplace.
fn short(id: &str) -> &str {
    id.split_once('@').map_or(id, |(name, _)| name)
}

/// The path without `.` segments, for a message about one that does not exist.
fn lexical(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != std::path::Component::CurDir).collect()
}
