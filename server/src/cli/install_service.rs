//! `svc install-service`: the definition of the service for its manager.

use crate::cli::call::Call;
use crate::cli::config::quiet;
use crate::cli::exit_code::Exit;
use crate::cli::failure::{End, Failure};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use svc_domain::service_unit::{Hardening, ServiceUnit};
use svc_process::files;

/// Where the configuration of a service is without `-c`.
const CONFIG: &str = "/etc/svc/svc.yml";
const LABEL: &str = "local.svc";

#[derive(Debug, Args)]
pub(crate) struct InstallService {
    /// Manager of services to write for.
    #[arg(value_enum)]
    pub(crate) manager: Manager,
    /// User the service runs as (systemd).
    #[arg(long, value_name = "NAME", conflicts_with = "user_unit")]
    pub(crate) user: Option<String>,
    /// Write it to PATH, or to where the manager looks.
    #[arg(long, value_name = "PATH", num_args = 0..=1)]
    pub(crate) write: Option<Option<PathBuf>>,
    /// For your own manager instead of the system's (systemd).
    #[arg(long)]
    pub(crate) user_unit: bool,
    /// Restrict the service and every session it starts (systemd).
    #[arg(long)]
    pub(crate) harden: bool,
    /// With --write: load the unit and start the service (systemd).
    #[arg(long, requires = "write")]
    pub(crate) enable: bool,
}

/// A manager of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Manager {
    Systemd,
    Launchd,
    Windows,
}

/// Prints the definition, or writes it.
pub(crate) fn run(call: &Call, options: &InstallService) -> Result<Exit, End> {
    let systemd_only =
        options.user.is_some() || options.user_unit || options.harden || options.enable;
    if options.manager != Manager::Systemd && systemd_only {
        return Err(refused("--user, --user-unit, --harden and --enable are for systemd only"));
    }
    let unit = unit(call, options)?;
    if !Path::new(&unit.config).exists() {
        let text = format!("warning: {} does not exist yet; the service needs it", unit.config);
        call.output.note(&text);
    }
    if is_of_root(options) {
        call.output.note(&format!(
            "warning: without --user the service and every session it starts run as root; add \
             `--user {}`, or --user-unit for a manager of your own",
            suggested_user()
        ));
    }
    let text = match options.manager {
        Manager::Systemd => unit.systemd(),
        Manager::Launchd => unit.launchd(LABEL),
        Manager::Windows => unit.windows(),
    };
    let text = text.map_err(|error| refused(error.to_string()))?;
    let Some(wanted) = &options.write else {
        call.output.raw(&text)?;
        next_steps(call, options, None);
        return Ok(Exit::Done);
    };
    let path = match wanted {
        Some(path) => path.clone(),
        None => usual(options, &unit.home)?,
    };
    write(&path, &text)?;
    call.output.line(&path.to_string_lossy())?;
    if options.enable {
        enable(options)?;
        return Ok(Exit::Done);
    }
    next_steps(call, options, Some(&path));
    Ok(Exit::Done)
}

/// Whether the service would run as root, because nobody said as whom.
fn is_of_root(options: &InstallService) -> bool {
    options.manager == Manager::Systemd && !options.user_unit && options.user.is_none()
}

/// Who runs this by `sudo`, else a name to be replaced.
fn suggested_user() -> String {
    let name = std::env::var("SUDO_USER").unwrap_or_default();
    let is_plain =
        |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let is_somebody = !name.is_empty() && name != "root" && is_plain(&name);
    if is_somebody { name } else { "NAME".to_owned() }
}

fn refused(text: impl Into<String>) -> End {
    Failure::new(Exit::Refused, "invalid_value", text).into()
}

fn unit(call: &Call, options: &InstallService) -> Result<ServiceUnit, End> {
    let loaded = quiet(call);
    let found = loaded.as_ref().and_then(|loaded| loaded.path.clone());
    let config = call.config.clone().or(found).unwrap_or_else(|| PathBuf::from(CONFIG));
    let program = svc_process::own_program::path().map_err(End::of_machine)?;
    let home = match &options.user {
        Some(user) => home_of(user)?,
        // Nothing of the account that writes it may come first on the path of a service of root.
        None if is_of_root(options) => home_of("root").unwrap_or_else(|_| PathBuf::from("/root")),
        None => std::env::var_os("HOME").map_or_else(|| PathBuf::from("/root"), PathBuf::from),
    };
    let hardening = match (&loaded, options.harden) {
        (_, false) => None,
        (Some(loaded), true) => Some(Hardening {
            state_dir: absolute(&loaded.config.state_dir)?,
            projects_root: absolute(&loaded.config.projects_root)?,
        }),
        (None, true) => {
            return Err(refused(
                "--harden names what the service may write, so it needs a usable configuration; \
                 check it with `svc config check`",
            ));
        }
    };
    Ok(ServiceUnit {
        program: absolute(&program)?,
        config: absolute(&config)?,
        home: absolute(&home)?,
        user: options.user.clone(),
        is_user_unit: options.user_unit,
        hardening,
    })
}

fn absolute(path: &Path) -> Result<String, End> {
    let absolute = std::path::absolute(path).map_err(End::of_machine)?;
    absolute.into_os_string().into_string().map_err(|path| {
        refused(format!("{} is not UTF-8, and a service definition is text", path.display()))
    })
}

/// The home of a user of this machine.
fn home_of(user: &str) -> Result<PathBuf, End> {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(user)).then(|| fields.nth(4).map(PathBuf::from)).flatten()
    });
    home.ok_or_else(|| {
        refused(format!("there is no user {user:?} in /etc/passwd; create it first"))
    })
}

fn usual(options: &InstallService, home: &str) -> Result<PathBuf, End> {
    match (options.manager, options.user_unit) {
        (Manager::Systemd, false) => Ok("/etc/systemd/system/svc.service".into()),
        (Manager::Systemd, true) => Ok(format!("{home}/.config/systemd/user/svc.service").into()),
        (Manager::Launchd, _) => Ok(format!("{home}/Library/LaunchAgents/{LABEL}.plist").into()),
        (Manager::Windows, _) => Err(refused(
            "the commands for Windows have no usual place; name a file with --write PATH",
        )),
    }
}

fn write(path: &Path, text: &str) -> Result<(), End> {
    let failed = |reason: String| {
        let text = format!(
            "{} cannot be written ({reason}); run this as a user who may (by sudo, with --user), \
             name another file with --write PATH, or take --user-unit for a manager of your own",
            path.display()
        );
        End::from(Failure::new(Exit::Failed, "io", text))
    };
    let absolute = std::path::absolute(path).map_err(|error| failed(error.to_string()))?;
    if let Some(parent) = absolute.parent() {
        fs::create_dir_all(parent).map_err(|error| failed(error.to_string()))?;
    }
    files::replace_with_mode(&absolute, text.as_bytes(), 0o644)
        .map_err(|error| failed(crate::error_chain::error_chain(&error)))
}

fn manager(user_unit: bool) -> &'static [&'static str] {
    if user_unit { &["systemctl", "--user"] } else { &["systemctl"] }
}

fn enable(options: &InstallService) -> Result<(), End> {
    let [program, more @ ..] = manager(options.user_unit) else { return Ok(()) };
    for args in [&["daemon-reload"][..], &["enable", "--now", "svc.service"]] {
        let done = Command::new(program).args(more).args(args).output();
        let done = done.map_err(End::of_machine)?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            let text = format!("`{program} {}` failed: {said}", args.join(" "));
            return Err(Failure::new(Exit::Failed, "systemd", text).into());
        }
    }
    Ok(())
}

fn next_steps(call: &Call, options: &InstallService, written: Option<&Path>) {
    let prefix = manager(options.user_unit).join(" ");
    match options.manager {
        Manager::Systemd => {
            call.output.note(&format!("next: {prefix} daemon-reload"));
            call.output.note(&format!("then: {prefix} enable --now svc.service"));
            if options.user_unit {
                call.output.note("to run without a login: loginctl enable-linger");
            }
            if options.user_unit && options.harden {
                call.output.note(
                    "a user's manager cannot protect the file system without breaking the agent; \
                     that part is left out",
                );
            }
        }
        Manager::Launchd => {
            let name = format!("{LABEL}.plist");
            let path = written.unwrap_or(Path::new(&name));
            call.output.note(&format!("next: launchctl load -w '{}'", path.display()));
        }
        Manager::Windows => call.output.note(
            "this version of svc does not run on Windows: the lines are for one that does, to be run \
             in an elevated prompt",
        ),
    }
}
