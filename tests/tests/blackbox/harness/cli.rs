//! Commands of the program under test.

use super::canary::{self, Audience};
use super::{World, service, within};
use serde_json::Value;
use std::path::Path;
use tokio::process::Command;

/// A command that ended.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|e| panic!("not JSON: {e}\n{}\n{}", self.stdout, self.stderr))
    }

    /// The same, when it went well.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }
}

impl World {
    /// A command of the program under test, not started.
    pub fn command(&self, program: &Path, args: &[&str]) -> Command {
        let mut words = self.entrance();
        words.push(program.into());
        let mut command = Command::new(words.remove(0));
        command
            .args(words)
            .args(args)
            .arg("--config")
            .arg(&self.config)
            .current_dir(&self.root)
            .env_clear()
            .envs(self.environment())
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs `svc` with these arguments to its end.
    pub async fn cli(&self, args: &[&str]) -> Ran {
        self.cli_with(args, &[]).await
    }

    pub async fn cli_with(&self, args: &[&str], env: &[(&str, &str)]) -> Ran {
        let mut command = self.command(&service(), args);
        command.envs(env.iter().copied());
        let what = format!("the end of `svc {}`", args.join(" "));
        let done = within(&what, command.output()).await.expect("the program runs");
        let ran = Ran {
            code: done.status.code(),
            stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        };
        // The link of a bridge is printed to whoever asks for it, alone.
        let is_link = ran.stdout.lines().count() == 1 && ran.stdout.starts_with("https://");
        let to = if is_link { Audience::Linked } else { Audience::Operator };
        canary::check(&format!("the output of `svc {}`", args.join(" ")), to, &ran.stdout);
        canary::check(&format!("standard error of `svc {}`", args.join(" ")), to, &ran.stderr);
        ran
    }
}
