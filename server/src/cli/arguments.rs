//! The argument tree: commands, options and their help.

use crate::cli::approvals::{Allow, Approvals, Deny, Message, NamedApproval};
use crate::cli::backup::{Backup, Restore};
use crate::cli::changes::Changes;
use crate::cli::config::{Check, Config, Show};
use crate::cli::config_write::{Get, Set};
use crate::cli::credentials::{ApiToken, HashPassword, IssueToken, Labelled};
use crate::cli::demo::Demo;
use crate::cli::deps::{self, Deps, Install, Uninstall};
use crate::cli::devices::{Devices, SignOut};
use crate::cli::doctor::Doctor;
use crate::cli::install_service::InstallService;
use crate::cli::jobs::{Jobs, NamedJob, ResumeJob, StartJob};
use crate::cli::keepers::Keepers;
use crate::cli::launches::{self, Launches};
use crate::cli::logs::Logs;
use crate::cli::notifications::Notifications;
use crate::cli::open::Open;
use crate::cli::options::{Listing, Named};
use crate::cli::projects::{CloneProject, Create};
use crate::cli::push::{NamedDevice, Push};
use crate::cli::reap_environments::ReapEnvironments;
use crate::cli::report::{self, Report};
use crate::cli::restart::Restart;
use crate::cli::restore::RestoreSessions;
use crate::cli::screen::Screen;
use crate::cli::stranded::{self, Stranded};
use crate::cli::strays::Strays;
use crate::cli::support::{self, Support};
use crate::cli::upgrade::{self, Upgrade};
use crate::cli::usage::Usage;
use crate::cli::webhooks::Webhooks;
use crate::cli::worktrees::Worktrees;
use crate::cli::write::{AfterLimit, RestartPolicy, Resume, Start};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Where the configuration is looked for, as the top help says it.
const SEARCH: &str = "\
The configuration is the first file that exists of:
  1. -c FILE                 (then nothing else is looked at)
  2. $SVC_CONFIG             (when set, nothing else is looked at)
  3. ./svc.yml
  4. $SVC_HOME/svc.yml
  5. $XDG_CONFIG_HOME/svc/svc.yml   (without it: ~/.config/svc/svc.yml)
  6. /etc/svc/svc.yml

Examples:
  svc demo                   try it: sample projects, a simulated agent, nothing to install
  svc -c ./svc.yml           serve
  svc start api --wait       start a bridge of the project `api` and wait until it runs
  svc status --json          all bridges, for a program

Exit codes: 0 done; 1 attempted and failed; 2 cannot be attempted as asked;
3 blocked by a strictness flag or a running service; 130/143 interrupted.";

/// Starts, tracks and shows remote-control bridges of the projects on this machine.
#[derive(Debug, Parser)]
#[command(name = "svc", version, after_help = SEARCH, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// Configuration file; without it the places that `svc --help` lists are searched.
    #[arg(short, long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// No colour, also on a terminal (the variable `NO_COLOR` does the same).
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Without one: `run`.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve API and page until SIGTERM or SIGINT; bridges keep running. The default.
    #[command(after_help = "\
Without a configuration a page on http://127.0.0.1:7621/ asks for what is needed, writes the first
file of the search list (authentication on, mode 0600), and the service starts. Elsewhere than on
loopback that page asks for a token, which is printed here once.
  SVC_SETUP_HOST, SVC_SETUP_PORT   where that page is served

Examples:
  svc run
  svc run -c /etc/svc/svc.yml
  SVC_SETUP_HOST=0.0.0.0 svc run     a first run in a container")]
    Run,
    /// Serve a private temporary tree with sample projects and a simulated agent.
    #[command(after_help = "\
Needs no configuration, login or network, and reads none of yours. At the end its bridges are
stopped and the tree is removed.

Examples:
  svc demo
  svc demo --port 8080 --open
  svc demo --keep ./demo     keep projects, state and logs for another time")]
    Demo(Demo),
    /// Check, show, locate or describe the configuration.
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "Examples:\n  svc config check --strict\n  svc config show --effective\n  svc config path\n  svc config set claude.launch_mode pty"
    )]
    Config(Config),
    /// Check everything the service needs, and say what to do about what is wrong.
    #[command(after_help = "\
One line per check: PASS, WARN or FAIL, its name, what was found, and what to do.
Exit 1 with a failure, else 0; with --strict, 3 when there are only warnings.

Checks: config, config-keys, config-mode, env, claude, claude-login, projects_root, state_dir,
git, auth, workspace-trust, node-toolchain, extra:pty, extra:notify, binary:hosted,
binary:hosted:shadow, tls, disk, db, strays, keepers, restart, duplicate-sessions, systemd,
version, port, server.

Examples:
  svc doctor
  svc doctor --fix                    close files to others, then check again
  svc doctor --strict --json          for a program, warnings count
  svc doctor --probe                  as clients reach the service, through its proxies
  svc doctor --only claude claude-login")]
    Doctor(Doctor),
    /// List the projects.
    #[command(after_help = "Examples:\n  svc projects\n  svc projects --json")]
    Projects(Listing),
    /// Make an empty project.
    #[command(after_help = "\
The directory appears whole, and never over anything that is there. It is not trusted.

Examples:
  svc create notes
  svc create api --git-init --json")]
    Create(Create),
    /// Clone a project over https or ssh.
    #[command(after_help = "\
Hosts in private networks need `clone.allowed_private_cidrs`. Do not put a password into the
address: git uses the SSH keys and the ~/.netrc of this user. Nothing of the repository runs, no
submodule is fetched, and its directory is not trusted. Ctrl-C leaves nothing behind.

Examples:
  svc clone https://git.example.org/team/ledger.git
  svc clone ssh://git@git.example.org/team/ledger.git books --shallow")]
    Clone(CloneProject),
    /// List the bridges, ended ones included.
    #[command(after_help = "Examples:\n  svc status\n  svc status --json")]
    Status(Listing),
    /// List the working sessions of the agent, whoever started them.
    #[command(after_help = "Examples:\n  svc sessions\n  svc sessions --json")]
    Sessions(Listing),
    /// List launches that wait for the reset of a plan limit, or cancel one.
    #[command(args_conflicts_with_subcommands = true, after_help = launches::HELP)]
    Launches(Launches),
    /// List conversations whose bridge died, continue or dismiss one.
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = stranded::HELP
    )]
    Stranded(Stranded),
    /// List remote environments without a live bridge, or remove them.
    #[command(after_help = "\
Without an option nothing is changed. Never listed: what runs here, other machines and the cloud.

Examples:
  svc reap-environments
  svc reap-environments --archive")]
    ReapEnvironments(ReapEnvironments),
    /// List processes of bridges that no live bridge answers for, or kill one.
    #[command(after_help = "\
What is left of ended bridges, and a second agent under one launch. Only what is listed is killed.

Examples:
  svc strays
  svc strays --kill 4242")]
    Strays(Strays),
    /// List the processes that hold the terminals of sessions, or kill an orphaned one.
    #[command(after_help = "\
A keeper outlives the service and ends with its session. It is an orphan when no record of its
project is left. Only an orphan is killed; --force also takes one whose project has a record.

Examples:
  svc keepers
  svc keepers --kill 4242")]
    Keepers(Keepers),
    /// List, start, stop or resume background jobs of the agent.
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
A background job works through one prompt without anybody watching. Jobs belong to the agent;
these commands need no running server.

Examples:
  svc jobs list
  svc jobs start api \"update the changelog\"
  svc jobs stop 450f4654
  svc jobs resume 450f4654"
    )]
    Jobs(Jobs),
    /// List, show, allow or deny requests of Direct Sessions.
    #[command(
        subcommand,
        arg_required_else_help = true,
        after_help = "\
Direct Sessions ask here before they use a tool. Each request is answered once, by whoever is
first. Without a running service the answer is delivered when the service runs again.

Examples:
  svc approvals list
  svc approvals allow 1f2e
  svc approvals deny 1f2e --message \"not on a Friday\""
    )]
    Approvals(Approvals),
    /// Send a message to the agent of a Direct Session.
    #[command(after_help = "\
Examples:
  svc message api \"run the tests again\"
  svc message 3f2a < task.md")]
    Message(Message),
    /// Start a bridge of a project, or name the one that is live.
    #[command(after_help = "\
Waits up to 15 seconds for the outcome. A bridge that is still starting after that goes on starting.

Examples:
  svc start api
  svc start api --wait                      until it runs; exit 1 if it does not
  svc start api --spawn-mode worktree --permission-mode acceptEdits
  svc start api --restart on-crash          start it again after a crash
  svc start api --mode hosted               a Direct Session, with `hosted.enabled`
  svc start api --wait-for-limit            after the reset of a plan limit that is known
  svc start api --trust                     trust the directory first")]
    Start(Start),
    /// Stop a bridge.
    #[command(after_help = "Examples:\n  svc stop api\n  svc stop 3f2a")]
    Stop(Named),
    /// Start an ended bridge again, in the same record.
    #[command(after_help = "\
Also ends the pause of a bridge that crashed too often to be restarted by itself.

Examples:
  svc resume api
  svc resume 3f2a --json")]
    Resume(Resume),
    /// Set when a bridge is started again by itself.
    #[command(
        name = "restart-policy",
        after_help = "\
`on-crash` after a crash, `always` also after an exit with code 0 and after a reboot. `svc stop`
ends a restart that is due; `svc status` shows it.

Examples:
  svc restart-policy api on-crash
  svc restart-policy 3f2a inherit           follow the configuration again
  svc restart-policy api --after-reboot resume"
    )]
    RestartPolicy(RestartPolicy),
    /// Set what a session does that stopped at a plan limit.
    #[command(
        name = "on-limit",
        after_help = "\
`continue` tells a Direct or Interactive Session once, after the reset, to go on; a person who
goes on before ends that. `svc status` shows the limit.

Examples:
  svc on-limit api continue
  svc on-limit 3f2a inherit                 follow the configuration again"
    )]
    OnLimit(AfterLimit),
    /// Restore sessions that a reboot of the machine ended.
    #[command(
        name = "restore-sessions",
        after_help = "\
Without a name: list what can be restored. At most four start at the same time. Exit 1 when one of
them does not run in the end.

Examples:
  svc restore-sessions
  svc restore-sessions --all
  svc restore-sessions api 3f2a --json"
    )]
    RestoreSessions(RestoreSessions),
    /// Restart a session whose remote link is lost, with the same conversations.
    #[command(after_help = "\
Refused while the link is not lost: `svc status` shows it. `claude.heal: restart` does the same by
itself.

Examples:
  svc heal api
  svc heal 3f2a --json")]
    Heal(Named),
    /// Remove the record of an ended bridge.
    #[command(after_help = "Examples:\n  svc forget 3f2a")]
    Forget(Named),
    /// Print the log of a bridge, secrets masked; also of an ended one.
    #[command(after_help = "\
Examples:
  svc logs api               the last 64 KiB
  svc logs api -n 20 -f      the last 20 lines, then new ones until Ctrl-C")]
    Logs(Logs),
    /// Print what the terminal of an Interactive Session shows, secrets masked.
    #[command(after_help = "\
The rows as text, once. Works without a running server, and after the end for the last screen.

Examples:
  svc screen api
  svc screen 3f2a --json     rows, cursor and state, for a program")]
    Screen(Screen),
    /// Write one masked file with what helps somebody else to help.
    #[command(after_help = support::HELP)]
    SupportBundle(Support),
    /// Tell why an ended session or background job stopped, and what to do next.
    #[command(after_help = report::HELP)]
    Report(Report),
    /// List the files that changed where a session works, or show one file's changes.
    #[command(after_help = "\
Compared with the last commit; in a worktree, with where its branch left the default branch. New
files are included, secrets are masked. Nothing of the repository is run.

Examples:
  svc changes api
  svc changes 3f2a src/main.rs
  svc changes 3f2a src/main.rs --context 10 --json")]
    Changes(Changes),
    /// List the git worktrees of sessions, or remove one.
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
What the agent made in `.claude/worktrees` of a project. One is removed only when nothing runs in
it; when work would be lost with it, only with --force. A branch with commits of its own stays.

Examples:
  svc worktrees
  svc worktrees api --json
  svc worktrees remove api svc-3f2a91c0
  svc worktrees remove api svc-3f2a91c0 --force"
    )]
    Worktrees(Worktrees),
    /// Tokens and cost of one transcript of the agent.
    #[command(after_help = "\
Costs are by public list prices, so a bill may differ; a subscription is not charged by the token.
The page and GET /api/usage show all projects.

Examples:
  svc usage ~/.claude/projects/-srv-p-api/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.jsonl
  svc usage FILE --json")]
    Usage(Usage),
    /// List, try and repeat posts of events.
    #[command(
        subcommand,
        after_help = "Examples:\n  svc webhooks list\n  svc webhooks test 2 --json"
    )]
    Webhooks(Webhooks),
    /// Try the targets of notifications, and list what became of the last ones.
    #[command(
        subcommand,
        after_help = "Examples:\n  svc notifications list\n  svc notifications test 2 --json"
    )]
    Notifications(Notifications),
    /// List the devices that are notified while the page is closed, try or remove one.
    #[command(
        subcommand,
        after_help = "Examples:\n  svc push list\n  svc push test 3f2a90c1d4e5b607"
    )]
    Push(Push),
    /// Issue, list, rotate and revoke the named tokens of programs.
    #[command(
        name = "api-token",
        subcommand,
        after_help = "Examples:\n  svc api-token issue ci --scope read --expires 30d\n  svc api-token list"
    )]
    ApiToken(ApiToken),
    /// List the signed-in browsers, or sign one out.
    #[command(
        subcommand,
        after_help = "Examples:\n  svc devices list\n  svc devices sign-out 3f2a90c1d4e5b607"
    )]
    Devices(Devices),
    /// Show who can reach the service, and which key changes that.
    #[command(after_help = "Examples:\n  svc access\n  svc access --json")]
    Access(Listing),
    /// Make a hash for `auth.password_hash`.
    #[command(after_help = "\
Asks twice on a terminal. From a pipe: the first line; a second line must match.

Examples:
  svc hash-password
  svc hash-password < password-file")]
    HashPassword(HashPassword),
    /// Make an unnamed token and its hash for `auth.api_token_hash`.
    #[command(after_help = "Examples:\n  svc hash-token")]
    HashToken(Listing),
    /// Make a scrape token and its hash for `observability.metrics_token_hash`.
    #[command(after_help = "Examples:\n  svc hash-metrics-token")]
    HashMetricsToken(Listing),
    /// Print the link under which the remote client finds a running bridge.
    #[command(after_help = "Examples:\n  svc open api\n  svc open api --launch")]
    Open(Open),
    /// Archive the state directory and the configuration, also while the service runs.
    #[command(after_help = "\
One .tar.gz file with mode 0600: a manifest with the SHA-256 of every file, the state directory and
the configuration. The database is copied as it is at one moment and checked; the archive is read
again before it gets its name, and a killed backup leaves none. Exit 3 with --exclusive while a
service runs.

Examples:
  svc backup                         ./svc-backup-20250131T235959Z.tar.gz
  svc backup -o /var/backups/svc/    into a directory, made when it is missing
  svc backup -o svc.tar.gz --force --no-logs --json")]
    Backup(Backup),
    /// Replace a state directory by the one of an archive.
    #[command(after_help = "\
The archive is read whole and verified before anything is written, then unpacked beside the
directory and put in its place in one step; a failure leaves everything as it was. Everybody has to
sign in again, and revoked tokens stay revoked. Exit 3 while a service runs on the directory.

Examples:
  svc restore svc-backup-20250131T235959Z.tar.gz --state-dir ~/.local/state/svc --dry-run
  svc restore svc.tar.gz --state-dir ~/.local/state/svc --force
  svc restore svc.tar.gz --state-dir /srv/svc --config-out /etc/svc/svc.yml")]
    Restore(Restore),
    /// List, install or remove optional parts.
    #[command(subcommand, arg_required_else_help = true, after_help = deps::EXAMPLES)]
    Deps(Deps),
    /// Restart the running service in place.
    #[command(after_help = "\
The service checks its program and its configuration first, and goes on as it is if they would not
start (exit 1). Then it finishes what it is answering and replaces itself. The listening socket stays
open, so callers wait for a moment and none is refused. Bridges and sessions keep running.

Examples:
  svc restart
  svc restart -c /etc/svc/svc.yml --json")]
    Restart(Restart),
    /// Install another version for the running service, with a way back.
    #[command(after_help = upgrade::HELP)]
    Upgrade(Upgrade),
    /// Print or write the definition that makes this program a service.
    #[command(
        name = "install-service",
        after_help = "\
Paths in it are absolute: those of this program and of the configuration (-c, else the one that is
found, else /etc/svc/svc.yml). With --write it goes to PATH, /etc/systemd/system/svc.service,
~/.config/systemd/user/svc.service (--user-unit) or ~/Library/LaunchAgents. Sessions inherit what
--harden sets: no sudo, and on a system unit a file system that is read-only elsewhere.

Examples:
  svc install-service systemd --user me
  svc install-service systemd --user-unit --write --enable
  svc install-service systemd --user me --harden --write -c /etc/svc/svc.yml
  svc install-service launchd --write"
    )]
    InstallService(InstallService),
    /// Upgrade the `state.json` of an earlier version before its records are imported.
    #[command(after_help = "\
Reads strictly: a file it does not understand is left byte for byte as it is (exit 1). A file of
another schema version is kept as state.json.bak first. The registry is not touched; the next
start of the service takes the records over.

Examples:
  svc migrate
  svc migrate --json")]
    Migrate(Listing),
    /// Serve sessions to an agent (MCP) over standard input and output.
    #[command(after_help = "\
Lists sessions and shows their status. Tools that start, stop and resume sessions are offered
only with `mcp.allow_writes: true`. Works with the service and without it; ends with its input.

Examples:
  svc mcp
  svc mcp -c /etc/svc/svc.yml
  claude mcp add svc -- svc mcp      offer it to Claude Code")]
    Mcp,
    /// Print the completion script of a shell.
    #[command(after_help = "\
Completes commands, options, projects and instances. Works without a configuration.

Examples:
  svc completions bash > ~/.local/share/bash-completion/completions/svc
  svc completions zsh > \"${fpath[1]}/_svc\"
  svc completions fish > ~/.config/fish/completions/svc.fish")]
    Completions(Completions),
    /// Print the manual page of `svc`, or write all pages.
    #[command(after_help = "\
Examples:
  svc man | man -l -
  svc man --dir ./pages      svc.1, svc-<command>.1 and svc.yml.5")]
    Man(Manual),
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell to complete in.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// A shell with a completion script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Elvish,
}

#[derive(Debug, Args)]
pub(crate) struct Manual {
    /// Write every page into this directory instead.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

impl Command {
    /// Whether standard output belongs to JSON.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Run | Self::Demo(_) | Self::Mcp | Self::Completions(_) | Self::Man(_) => false,
            Self::InstallService(_) | Self::Config(Config::Reconcile(_)) => false,
            Self::Config(Config::Check(Check { json, .. }) | Config::Show(Show { json, .. }))
            | Self::Config(Config::Get(Get { json, .. }) | Config::Set(Set { json, .. }))
            | Self::Config(Config::Path(Listing { json }) | Config::Schema(Listing { json }))
            | Self::Doctor(Doctor { json, .. })
            | Self::ApiToken(
                ApiToken::Issue(IssueToken { named: Labelled { json, .. }, .. })
                | ApiToken::List(Listing { json })
                | ApiToken::Rotate(Labelled { json, .. })
                | ApiToken::Revoke(Labelled { json, .. }),
            )
            | Self::Devices(
                Devices::List(Listing { json }) | Devices::SignOut(SignOut { json, .. }),
            )
            | Self::Push(
                Push::List(Listing { json })
                | Push::Test(NamedDevice { json, .. })
                | Push::Remove(NamedDevice { json, .. }),
            )
            | Self::Access(Listing { json })
            | Self::HashPassword(HashPassword { json, .. })
            | Self::HashToken(Listing { json })
            | Self::HashMetricsToken(Listing { json })
            | Self::Projects(Listing { json })
            | Self::Create(Create { json, .. })
            | Self::Clone(CloneProject { json, .. })
            | Self::Status(Listing { json })
            | Self::Sessions(Listing { json })
            | Self::Launches(Launches { json, .. })
            | Self::Stranded(Stranded { json, .. })
            | Self::ReapEnvironments(ReapEnvironments { json, .. })
            | Self::Strays(Strays { json, .. })
            | Self::Keepers(Keepers { json, .. })
            | Self::Deps(
                Deps::List(Listing { json })
                | Deps::Install(Install { json, .. })
                | Deps::Uninstall(Uninstall { json, .. }),
            )
            | Self::Upgrade(Upgrade { json, .. })
            | Self::Restart(Restart { json })
            | Self::Backup(Backup { json, .. })
            | Self::Restore(Restore { json, .. })
            | Self::Migrate(Listing { json })
            | Self::Jobs(
                Jobs::List(Listing { json })
                | Jobs::Start(StartJob { json, .. })
                | Jobs::Stop(NamedJob { json, .. })
                | Jobs::Resume(ResumeJob { json, .. }),
            )
            | Self::Approvals(
                Approvals::List(Listing { json })
                | Approvals::Show(NamedApproval { json, .. })
                | Approvals::Allow(Allow { named: NamedApproval { json, .. }, .. })
                | Approvals::Deny(Deny { named: NamedApproval { json, .. }, .. }),
            )
            | Self::Message(Message { json, .. })
            | Self::Start(Start { json, .. })
            | Self::Stop(Named { json, .. })
            | Self::Resume(Resume { json, .. })
            | Self::RestoreSessions(RestoreSessions { json, .. })
            | Self::RestartPolicy(RestartPolicy { json, .. })
            | Self::OnLimit(AfterLimit { json, .. })
            | Self::Heal(Named { json, .. })
            | Self::Forget(Named { json, .. })
            | Self::Logs(Logs { json, .. })
            | Self::SupportBundle(Support { json, .. })
            | Self::Report(Report { json, .. })
            | Self::Changes(Changes { json, .. })
            | Self::Worktrees(Worktrees { json, .. })
            | Self::Screen(Screen { json, .. })
            | Self::Usage(Usage { json, .. })
            | Self::Open(Open { json, .. }) => *json,
            Self::Webhooks(command) => command.is_json(),
            Self::Notifications(command) => command.is_json(),
        }
    }
}

#[cfg(test)]
mod tests;
