//! The agent's own words that others depend on, from agent 2.1.197.

/// A turn of an account that is not logged in.
pub(super) const NOT_LOGGED_IN: &str = "Not logged in · Please run /login";

/// First words of a start that replies or converses over pipes.
pub(super) const PRINT_FORMS: [&str; 14] = [
    "--print",
    "-p",
    "--output-format",
    "--input-format",
    "--include-partial-messages",
    "--replay-user-messages",
    "--verbose",
    "--permission-mode",
    "--permission-prompt-tool",
    "--model",
    "--resume",
    "--continue",
    "--worktree",
    "-w",
];

/// An invocation without a terminal and without a prompt.
pub(super) const NO_INPUT: &str = "Error: Input must be provided either through stdin or as a \
                                   prompt argument when using --print";

/// Standard error of a bridge start without a claude.ai login.
pub(super) const LOGIN_REQUIRED: &str = "Error: You must be logged in to use Remote Control.\n\n\
    Remote Control is only available with claude.ai subscriptions. \
    Please use `/login` to sign in with your claude.ai account.";

/// Block the agent adds to [`LOGIN_REQUIRED`] when it writes a debug file.
pub(super) const AUTH_STATE: &str = "\
[debug] Remote Control auth state:
  isBareMode=false
  hasOAuthAccessToken=false
  oauthScopes=none
  hasClaudeAIInferenceScope=false
  isClaudeAISubscriber=false
  hasProfileScope=false
  oauthAccount.organizationUuid=unset
  ANTHROPIC_API_KEY=unset
  ANTHROPIC_AUTH_TOKEN=unset
  apiKeyHelper=unset
  CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR=unset
  CLAUDE_CODE_OAUTH_TOKEN=unset
  ANTHROPIC_UNIX_SOCKET=unset
  3P env=none";

pub(super) const WORKTREE_NEEDS_GIT: &str = "Error: Worktree mode requires a git repository or \
    WorktreeCreate hooks configured. Use --spawn=session for single-session mode.";

/// `--worktree` in a directory that nobody trusted.
pub(super) const WORKTREE_NEEDS_TRUST: &str = "Error creating worktree: Workspace trust not yet \
    accepted. Run `claude` once in this directory and accept the trust dialog, then retry with \
    --worktree.";

/// Why the flag form gets no remote link, in front of `--rc flag ignored.`.
pub(super) const RC_LOGIN: &str = "Remote Control requires a claude.ai subscription. Run `claude \
    auth login` to sign in with your claude.ai account.";

/// The same for an organization that does not allow it.
pub(super) const RC_POLICY: &str = "Remote Control is disabled by your organization's policy.";

pub(super) const ORG_POLICY: &str =
    "Error: Remote Control is disabled by your organization's policy.";

pub(super) const NETWORK: &str = "Error: getaddrinfo ENOTFOUND api.anthropic.com";

/// Answer 409 to a registration, as agent 2.1.329 words it: without the number.
pub(super) const ALREADY_SERVED: &str = "Error: This folder is already served by another Claude \
    Code on this device. Stop it first.";

pub(super) const REUSE_EXPIRED: &str = "Warning: Could not reuse the previous environment — it \
    has expired. Existing claude.ai/code sessions from the previous run will not reconnect.";

pub(super) const REMOTE_QUESTION: &str = "
Take this session with you and pick up right where you left off on any device.
Open the Code tab in the Claude mobile app, or visit claude.ai/code in a browser.

The session keeps running on this machine. Use your other devices as a remote
control. Press Ctrl+C to stop.

Enable Remote Control? (y/n) ";

/// Error of a start in a directory that nobody trusted.
pub(super) fn not_trusted(dir: &str) -> String {
    format!(
        "Error: Workspace not trusted. Please run `claude` in {dir} first to review and accept \
         the workspace trust dialog."
    )
}

/// Values `--permission-mode` takes.
pub(super) const PERMISSION_MODES: [&str; 6] =
    ["acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"];

/// The options the product uses, as `--help` lists them.
pub(super) const HELP: &str = "\
Usage: claude [options] [command] [prompt]

Options:
  --bg, --background               Start a background session
  -c, --continue                   Continue the most recent conversation
  --debug-file <path>              Write debug logs to a file
  --fork-session                   Use a new session id when resuming
  -h, --help                       Show this help
  --include-partial-messages       Include partial messages as they arrive
  --input-format <format>          Input format: text, stream-json
  --model <model>                  Model of the session
  -n, --name <name>                Name of the session
  --output-format <format>         Output format: text, json, stream-json
  --permission-mode <mode>         acceptEdits, auto, bypassPermissions, default, dontAsk, plan
  --permission-prompt-tool <tool>  Tool that answers permission prompts
  -p, --print                      Print the reply and exit
  --remote-control [name]          Interactive session with Remote Control
  --replay-user-messages           Repeat user messages on standard output
  -r, --resume [id]                Resume a conversation
  -v, --version                    Print the version
  --verbose                        More output
  -w, --worktree [name]            Make a git worktree for the session

Commands:
  agents                           List sessions (--json, --all, --cwd)
  attach <id>                      Open a background session in this terminal
  auth                             Sign in, sign out, status
  daemon                           Manage the background service
  logs <id>                        Print a background session's output
  mcp                              Configure MCP servers
  plugin                           Manage plugins
  remote-control                   Serve this directory to claude.ai/code
  respawn <id>|--all               Restart a background session
  rm <id>                          Remove a background session
  setup-token                      Make a long-lived token
  stop <id>                        Stop a background session
";

/// The sign-in that draws, without a terminal.
pub(super) const NO_RAW_MODE: &str =
    "Error: Raw mode is not supported on the current process.stdin.";

/// `remote-control --help`.
pub(super) const BRIDGE_HELP: &str = "
Remote Control - Control local sessions from claude.ai/code or the Claude mobile app

USAGE
  claude remote-control [options]
OPTIONS
  --name <name>                    Name for the session
  --remote-control-session-name-prefix <prefix>
                                   Prefix for generated session names
  --permission-mode <mode>         Permission mode for spawned sessions
  --debug-file <path>              Write debug logs to file
  -v, --verbose                    Enable verbose output
  -h, --help                       Show this help
  --spawn <mode>                   same-dir, worktree, session (default: same-dir)
  --capacity <N>                   Sessions at a time (default: 32)
  --[no-]create-session-in-dir     Create a session at the start (default: on)
";

pub(super) const STOP_HELP: &str = "Usage: claude stop <id>\n\n  Stop a background session. Its \
    conversation is kept; resume it later with `claude attach <id>`.\n";

pub(super) const RM_HELP: &str = "Usage: claude rm <id>\n\n  Delete a background session and its \
    worktree. Unlike `stop`, works on already-exited sessions.\n";

pub(super) const RESPAWN_HELP: &str = "Usage: claude respawn <id>|--all\n\n  Restart a background \
    session (or all of them) so it picks up the current Claude binary.\n";

pub(super) const LOGS_HELP: &str =
    "Usage: claude logs <id>\n\n  Print the background session's recent terminal output.\n";

pub(super) const ATTACH_HELP: &str =
    "Usage: claude attach <id>\n\n  Open a background session in this terminal.\n";

/// `daemon --help`.
pub(super) const DAEMON_HELP: &str = "\
Usage: claude daemon [subcommand] [options]

Service lifecycle:
  run [json-path]   Run the supervisor in the foreground (default when piped)
  status            Show daemon pid, version, uptime
  logs              Show the daemon log
  stop              Shut down the supervisor and terminate background sessions
                      --any           also stop a transient (non-service) daemon
";
