//! `mcp …`: changes the scope files of MCP servers, as agent 2.1.197 does.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::console::print;
use super::double::Double;
use super::failure::Failure;
use super::files;

/// Scopes a command may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Local,
    User,
    Project,
}

const SCOPES: [Scope; 3] = [Scope::Local, Scope::User, Scope::Project];

impl Scope {
    fn of(word: &str) -> Result<Self, Failure> {
        SCOPES.into_iter().find(|scope| scope.word() == word).ok_or_else(|| {
            Failure::agent(format!(
                "Invalid scope: {word}. Must be one of: local, user, project, dynamic, \
                 enterprise, claudeai, managed, agent"
            ))
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::User => "user",
            Self::Project => "project",
        }
    }

    fn file(self, double: &Double) -> PathBuf {
        match self {
            Self::Local | Self::User => double.home.config_file().to_owned(),
            Self::Project => double.cwd.join(".mcp.json"),
        }
    }

    /// The servers inside the content of the scope's file, made where they are missing.
    fn servers<'a>(
        self,
        double: &Double,
        root: &'a mut Value,
    ) -> Option<&'a mut Map<String, Value>> {
        let holder = match self {
            Self::User | Self::Project => root,
            Self::Local => {
                let projects = root.as_object_mut()?.entry("projects").or_insert(json!({}));
                let key = double.cwd.to_string_lossy().into_owned();
                projects.as_object_mut()?.entry(key).or_insert(json!({}))
            }
        };
        let servers = holder.as_object_mut()?.entry("mcpServers").or_insert(json!({}));
        servers.as_object_mut()
    }
}

/// Runs one `mcp` command.
pub(crate) fn run(double: &Double) -> Result<u8, Failure> {
    let words: Vec<&str> = double.args.iter().skip(1).map(String::as_str).collect();
    let given = Given::parse(words.get(1..).unwrap_or_default())?;
    match words.first().copied() {
        Some("add-json") => add(double, &given),
        Some("remove") => remove(double, &given),
        Some("list") => list(double),
        Some("get") => get(double, &given),
        Some("reset-project-choices") => reset(double),
        Some("--help" | "-h") => {
            print(USAGE);
            Ok(0)
        }
        None => {
            print(USAGE);
            Ok(1)
        }
        Some(odd) => Err(Failure::agent(format!("error: unknown command '{odd}'"))),
    }
}

const USAGE: &str = "Usage: claude mcp [options] [command]\n\nConfigure and manage MCP \
    servers\n\nCommands:\n  add-json [options] <name> <json>\n  get <name>\n  list\n  remove \
    [options] <name>\n  reset-project-choices\n";

struct Given<'a> {
    scope: Option<Scope>,
    words: Vec<&'a str>,
    secret: bool,
}

impl<'a> Given<'a> {
    fn parse(words: &[&'a str]) -> Result<Self, Failure> {
        let mut given = Self { scope: None, words: Vec::new(), secret: false };
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "--scope" | "-s" => {
                    let value = rest.next().ok_or_else(|| {
                        Failure::agent("error: option '-s, --scope <scope>' argument missing")
                    })?;
                    given.scope = Some(Scope::of(value)?);
                }
                "--client-secret" => given.secret = true,
                odd if odd.starts_with('-') => {
                    return Err(Failure::agent(format!("error: unknown option '{odd}'")));
                }
                word => given.words.push(word),
            }
        }
        Ok(given)
    }

    fn word(&self, at: usize, name: &str) -> Result<&'a str, Failure> {
        self.words
            .get(at)
            .copied()
            .ok_or_else(|| Failure::agent(format!("error: missing required argument '{name}'")))
    }
}

fn add(double: &Double, given: &Given<'_>) -> Result<u8, Failure> {
    let name = given.word(0, "name")?;
    let text = given.word(1, "json")?;
    let scope = given.scope.unwrap_or(Scope::Local);
    let invalid = || Failure::agent("Invalid configuration: : Invalid input");
    let mut server: Map<String, Value> = serde_json::from_str(text).map_err(|_| invalid())?;
    let kind = server.get("type").and_then(Value::as_str).unwrap_or("stdio").to_owned();
    let needed = match kind.as_str() {
        "stdio" => "command",
        "http" | "sse" => "url",
        _ => return Err(invalid()),
    };
    if !server.get(needed).is_some_and(Value::is_string) {
        return Err(invalid());
    }
    if given.secret {
        let secret = std::env::var("MCP_CLIENT_SECRET").map_err(|_| {
            Failure::agent("Error: MCP_CLIENT_SECRET is not set and there is no terminal to ask")
        })?;
        // The agent keeps it in its own store, out of the scope file.
        let file = double.home.mark().join("mcp-secrets.json");
        let mut secrets = read(&file)?;
        if let Some(secrets) = secrets.as_object_mut() {
            secrets.insert(name.to_owned(), json!(secret.len()));
        }
        write(&file, &secrets)?;
    }
    server.entry("type").or_insert(json!("stdio"));
    let file = scope.file(double);
    let mut root = read(&file)?;
    let servers = scope.servers(double, &mut root).ok_or_else(|| broken(&file))?;
    if servers.contains_key(name) {
        return Err(Failure::agent(format!(
            "MCP server {name} already exists in {} config",
            scope.word()
        )));
    }
    servers.insert(name.to_owned(), Value::Object(server));
    write(&file, &root)?;
    print(&format!("Added {kind} MCP server {name} to {} config\n", scope.word()));
    Ok(0)
}

fn remove(double: &Double, given: &Given<'_>) -> Result<u8, Failure> {
    let name = given.word(0, "name")?;
    let holders: Vec<Scope> = SCOPES
        .into_iter()
        .filter(|scope| names(double, *scope).contains(&name.to_owned()))
        .collect();
    let scope = match (given.scope, holders.as_slice()) {
        (Some(scope), holders) if holders.contains(&scope) => scope,
        (Some(scope), _) => {
            return Err(Failure::agent(format!(
                "No MCP server named \"{name}\" in {} scope",
                scope.word()
            )));
        }
        (None, [only]) => *only,
        (None, []) => {
            return Err(Failure::agent(format!("No MCP server named \"{name}\"")));
        }
        (None, _) => {
            return Err(Failure::agent(format!(
                "MCP server \"{name}\" exists in multiple scopes; name one with --scope"
            )));
        }
    };
    let file = scope.file(double);
    let mut root = read(&file)?;
    if let Some(servers) = scope.servers(double, &mut root) {
        servers.remove(name);
    }
    write(&file, &root)?;
    let place = match scope {
        Scope::Local => format!("{} [project: {}]", file.display(), double.cwd.display()),
        Scope::User | Scope::Project => file.display().to_string(),
    };
    print(&format!(
        "Removed MCP server {name} from {} config\nFile modified: {place}\n",
        scope.word()
    ));
    Ok(0)
}

fn list(double: &Double) -> Result<u8, Failure> {
    let all: Vec<(Scope, String)> = SCOPES
        .into_iter()
        .flat_map(|scope| names(double, scope).into_iter().map(move |name| (scope, name)))
        .collect();
    if all.is_empty() {
        print("No MCP servers configured. Use `claude mcp add` to add a server.\n");
        return Ok(0);
    }
    print("Checking MCP server health…\n\n");
    for (scope, name) in all {
        let state = match scope {
            Scope::Project => "⏸ Pending approval (run `claude` to approve)",
            Scope::Local | Scope::User => "✘ Failed to connect",
        };
        print(&format!("{name} - {state}\n"));
    }
    Ok(0)
}

fn get(double: &Double, given: &Given<'_>) -> Result<u8, Failure> {
    let name = given.word(0, "name")?;
    let scope = SCOPES.into_iter().find(|scope| names(double, *scope).contains(&name.to_owned()));
    let Some(scope) = scope else {
        return Err(Failure::agent(format!("No MCP server named \"{name}\".")));
    };
    print(&format!(
        "{name}:\n  Scope: {} config\n  Status: ✘ Failed to connect\n\nTo remove this server, run: \
         claude mcp remove {name} -s {}\n",
        match scope {
            Scope::Local => "Local",
            Scope::User => "User",
            Scope::Project => "Project",
        },
        scope.word()
    ));
    Ok(0)
}

/// Forgets which servers of `.mcp.json` were approved here.
fn reset(double: &Double) -> Result<u8, Failure> {
    let file = double.home.config_file().to_owned();
    let mut root = read(&file)?;
    let key = double.cwd.to_string_lossy().into_owned();
    let project = root.get_mut("projects").and_then(|projects| projects.get_mut(key));
    if let Some(project) = project.and_then(Value::as_object_mut) {
        for choice in ["enabledMcpjsonServers", "disabledMcpjsonServers"] {
            project.insert(choice.into(), json!([]));
        }
        write(&file, &root)?;
    }
    print(
        "Project-scoped (.mcp.json) server approvals and rejections stored for this project have \
         been reset.\n",
    );
    Ok(0)
}

fn names(double: &Double, scope: Scope) -> Vec<String> {
    let Ok(mut root) = read(&scope.file(double)) else {
        return Vec::new();
    };
    scope
        .servers(double, &mut root)
        .map(|servers| servers.keys().cloned().collect())
        .unwrap_or_default()
}

/// A JSON object from a file; a missing file is an empty one.
pub(crate) fn read(file: &std::path::Path) -> Result<Value, Failure> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(json!({})),
        Err(e) => {
            return Err(Failure::agent(format!("Error: cannot read {}: {e}", file.display())));
        }
    };
    let value: Value = serde_json::from_str(&text).map_err(|_| broken(file))?;
    if value.is_object() { Ok(value) } else { Err(broken(file)) }
}

/// Replaces a file with indented JSON, as the agent writes its own.
pub(crate) fn write(file: &std::path::Path, value: &Value) -> Result<(), Failure> {
    let made = file.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| files::replace(file, format!("{value:#}").as_bytes()))
        .map_err(|e| Failure::agent(format!("Error: cannot write {}: {e}", file.display())))
}

fn broken(file: &std::path::Path) -> Failure {
    Failure::agent(format!("Invalid configuration: {} is not a JSON object", file.display()))
}
