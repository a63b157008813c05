//! The texts that make the program a service of its machine.

use std::fmt::Write as _;

/// What a service definition is made of. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceUnit {
    /// The program.
    pub program: String,
    /// Its configuration file.
    pub config: String,
    /// Home of the user it runs as.
    pub home: String,
    /// The user it runs as, where that is not decided by who starts it.
    pub user: Option<String>,
    /// For the manager of one user instead of the system's.
    pub is_user_unit: bool,
    /// Restrict it and every session that it starts.
    pub hardening: Option<Hardening>,
}

/// What a hardened service may still write beside its home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hardening {
    /// The state directory.
    pub state_dir: String,
    /// The directory of the projects.
    pub projects_root: String,
}

/// A value that cannot stand in a service definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{value:?} contains {what}, which a service definition cannot hold; rename it")]
pub struct UnfitValue {
    value: String,
    what: &'static str,
}

impl ServiceUnit {
    fn values(&self) -> impl Iterator<Item = &String> {
        let hardening = self.hardening.iter();
        let written = hardening.flat_map(|hard| [&hard.state_dir, &hard.projects_root]);
        [&self.program, &self.config, &self.home].into_iter().chain(&self.user).chain(written)
    }

    fn refuse(&self, unfit: fn(char) -> bool, what: &'static str) -> Result<(), UnfitValue> {
        match self.values().find(|value| value.contains(unfit)) {
            Some(value) => Err(UnfitValue { value: value.clone(), what }),
            None => Ok(()),
        }
    }

    fn config_dir(&self) -> &str {
        match self.config.rsplit_once('/') {
            Some(("", _)) | None => "/",
            Some((directory, _)) => directory,
        }
    }

    fn path_variable(&self) -> String {
        format!("{}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", self.home)
    }

    /// The unit of systemd.
    ///
    /// `KillMode=process` and `OOMPolicy=continue` keep sessions alive. Nothing is ever set that
    /// hides homes or temporary files from the agent, or changes the modes of its files.
    ///
    /// # Errors
    /// A value contains a control character, such as a line break.
    pub fn systemd(&self) -> Result<String, UnfitValue> {
        self.refuse(char::is_control, "a control character")?;
        if self.config_dir().ends_with([' ', '\\']) {
            // At the end of a line these have a meaning that cannot be escaped there.
            let value = self.config_dir().to_owned();
            return Err(UnfitValue { value, what: "a blank or backslash at its end" });
        }
        let mut unit = String::from(
            "[Unit]\nDescription=Remote-control bridges of the projects on this machine\n\
             After=network-online.target\nWants=network-online.target\n\
             StartLimitIntervalSec=60\nStartLimitBurst=5\n\n[Service]\nType=notify\n",
        );
        if let Some(user) = self.user.as_ref().filter(|_| !self.is_user_unit) {
            let _ = writeln!(unit, "User={}", specifiers(user)); // a String takes everything
        }
        let argument = |text: &str| quoted(text).replace('$', "$$");
        let environment = |name: &str, value: &str| quoted(&format!("{name}={value}"));
        let lines = [
            format!("ExecStart={} run -c {}", quoted(&self.program), argument(&self.config)),
            "ExecReload=/bin/kill -HUP $MAINPID".to_owned(),
            format!("WorkingDirectory={}", specifiers(self.config_dir())),
            format!("Environment={}", environment("SVC_CONFIG", &self.config)),
            format!("Environment=\"{}\"", inner(&format!("PATH={}", self.path_variable()))),
            "Restart=on-failure\nRestartSec=5\nWatchdogSec=60".to_owned(),
            "KillMode=process\nOOMPolicy=continue".to_owned(),
        ];
        for line in lines {
            unit.push_str(&line);
            unit.push('\n');
        }
        if let Some(hardening) = &self.hardening {
            self.harden(&mut unit, hardening);
        }
        let wanted_by = if self.is_user_unit { "default.target" } else { "multi-user.target" };
        let _ = write!(unit, "\n[Install]\nWantedBy={wanted_by}\n");
        Ok(unit)
    }

    fn harden(&self, unit: &mut String, hardening: &Hardening) {
        unit.push_str("# Every session inherits this: no sudo, no set-uid programs.\n");
        unit.push_str("NoNewPrivileges=true\nRestrictSUIDSGID=true\nLockPersonality=true\n");
        if self.is_user_unit {
            // In a user's manager these would imply PrivateUsers=, which breaks the agent.
            return;
        }
        unit.push_str(
            "ProtectKernelTunables=true\nProtectKernelModules=true\nProtectControlGroups=true\n\
             ProtectSystem=strict\nReadWritePaths=",
        );
        // Without the minus a directory that is made later would stop the start.
        let written = [
            hardening.state_dir.as_str(),
            hardening.projects_root.as_str(),
            self.config_dir(),
            self.home.as_str(),
        ];
        let written = written.map(|path| quoted(&format!("-{path}")));
        unit.push_str(&written.join(" "));
        unit.push('\n');
    }

    /// The property list of launchd.
    ///
    /// # Errors
    /// A value contains a control character, which XML cannot hold.
    pub fn launchd(&self, label: &str) -> Result<String, UnfitValue> {
        self.refuse(char::is_control, "a control character")?;
        let text = |value: &str| format!("<string>{}</string>", xml(value));
        Ok(format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>{}
  <key>ProgramArguments</key>
  <array>
    {}
    <string>run</string>
    <string>-c</string>
    {}
  </array>
  <key>WorkingDirectory</key>{}
  <key>EnvironmentVariables</key>
  <dict>
    <key>SVC_CONFIG</key>{}
    <key>PATH</key>{}
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><true/>
</dict>
</plist>
"#,
            text(label),
            text(&self.program),
            text(&self.config),
            text(self.config_dir()),
            text(&self.config),
            text(&self.path_variable()),
        ))
    }

    /// The commands that register the service on Windows, for an elevated prompt.
    ///
    /// A service of Windows must answer its manager, which a wrapper does for the program. What
    /// was registered and does not start is removed again.
    ///
    /// # Errors
    /// A value contains a quote, a percent sign or a control character.
    pub fn windows(&self) -> Result<String, UnfitValue> {
        let unfit = |letter: char| letter == '"' || letter == '%' || letter.is_control();
        self.refuse(unfit, "a quote, a percent sign or a control character")?;
        Ok(format!(
            "rem Needs the service wrapper Shawl (https://github.com/mtkennerly/shawl) on PATH.\r\n\
             shawl add --name svc -- \"{}\" run -c \"{}\" && \
             ((sc.exe config svc start= auto && sc.exe start svc) || sc.exe delete svc)\r\n",
            self.program, self.config
        ))
    }
}

/// A percent sign begins a specifier of systemd.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

fn inner(text: &str) -> String {
    specifiers(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// One word of a list of systemd, quoted where it has to be.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:=@,%$~".contains(letter);
    if text.chars().all(is_plain) { specifiers(text) } else { format!("\"{}\"", inner(text)) }
}

fn xml(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;").replace('\'', "&apos;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> ServiceUnit {
        ServiceUnit {
            program: "/opt/my tools/svc".into(),
            config: "/etc/50% $x/svc.yml".into(),
            home: "/home/me".into(),
            user: Some("me".into()),
            is_user_unit: false,
            hardening: None,
        }
    }

    #[test]
    fn h113_paths_are_escaped_for_systemd() {
        let text = unit().systemd().unwrap();
        for line in [
            "ExecStart=\"/opt/my tools/svc\" run -c \"/etc/50%% $$x/svc.yml\"",
            "WorkingDirectory=/etc/50%% $x",
            "Environment=\"SVC_CONFIG=/etc/50%% $x/svc.yml\"",
            "User=me",
            "KillMode=process",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        let broken = ServiceUnit { home: "/home/a\nUser=root".into(), ..unit() };
        assert!(broken.systemd().is_err() && broken.launchd("x").is_err());
        for config in ["/etc/blank /svc.yml", "/etc/back\\/svc.yml"] {
            let refused = ServiceUnit { config: config.into(), ..unit() }.systemd().unwrap_err();
            assert!(refused.to_string().contains("at its end"), "{refused}");
        }
    }

    #[test]
    fn h113_no_form_sets_what_breaks_the_agent() {
        let hardening = Hardening { state_dir: "/var/lib/svc".into(), projects_root: "/p".into() };
        for is_user_unit in [false, true] {
            let hardening = Some(hardening.clone());
            let text = ServiceUnit { is_user_unit, hardening, ..unit() }.systemd().unwrap();
            for never in ["ProtectHome", "PrivateUsers", "PrivateTmp", "MemoryDeny", "UMask"] {
                assert!(!text.contains(&format!("{never}=")), "{never}\n{text}");
            }
            assert!(text.contains("NoNewPrivileges=true"));
            assert_eq!(text.contains("ProtectSystem=strict"), !is_user_unit);
            assert_eq!(text.contains("User=me"), !is_user_unit);
        }
    }

    #[test]
    fn other_managers_get_escaped_texts_too() {
        let odd = ServiceUnit { program: "/a&b<c>/svc".into(), ..unit() };
        let list = odd.launchd("local.svc").unwrap();
        assert!(list.contains("<string>/a&amp;b&lt;c&gt;/svc</string>"), "{list}");
        assert!(ServiceUnit { program: "C:\\a\"b".into(), ..unit() }.windows().is_err());
        assert!(unit().windows().is_err(), "a percent sign begins a variable there");
        let plain = ServiceUnit { config: "C:\\svc.yml".into(), ..unit() };
        assert!(
            plain
                .windows()
                .unwrap()
                .contains("shawl add --name svc -- \"/opt/my tools/svc\" run -c")
        );
    }
}
