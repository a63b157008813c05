//! A process that does not belong to the service and counts the signals it gets.

use super::{Process, World, processes, within};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use tokio::process::{Child, Command};

/// Signals a service might send. After the uncatchable one the witness is gone.
const COUNTED: &str = "HUP INT QUIT TERM USR1 USR2";

/// A stranger among the processes.
pub struct Witness {
    child: Child,
    pub process: Process,
    record: PathBuf,
}

impl World {
    /// Starts a witness that is up when this returns.
    pub async fn witness(&self, name: &str) -> Witness {
        let record = self.root.join(format!("signals-of-{name}"));
        // The shell waits for a child that never ends; `wait` returns for every trapped signal.
        let script = format!(
            "for s in {COUNTED}; do trap \"echo $s >> '{0}'\" $s; done; \
             sleep 100000 & echo up >> '{0}'; while :; do wait $!; done",
            record.display()
        );
        // A shell cannot trap what was ignored when it began, as in a background job of CI.
        let mut command = Command::new("env");
        command
            .args(["--default-signal=HUP,INT,QUIT,TERM,USR1,USR2", "bash", "-c", &script, name])
            .env_clear()
            .envs(self.environment())
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0) // it leads a group, so that a group signal would reach it
            .kill_on_drop(true);
        let child = command.spawn().expect("bash runs");
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).expect("it runs");
        self.until("the witness", || fs::metadata(&record).ok()).await;
        let process = self.processes().into_iter().find(|process| process.pid == pid);
        Witness { child, process: process.expect("it runs"), record }
    }
}

impl Witness {
    /// Panics unless it lives and got no signal except the test signal sent here.
    pub async fn assert_untouched(&mut self, world: &World) {
        assert!(self.process.is_alive(), "the witness was killed");
        self.process.signal(rustix::process::Signal::USR2);
        let record = self.record.clone();
        let read = move || fs::read_to_string(&record).unwrap_or_default();
        world.until("the signal of the test", || read().contains("USR2").then_some(())).await;
        let record = fs::read_to_string(&self.record).expect("its record");
        assert_eq!(record, "up\nUSR2\n", "signals the witness got");
        self.child.start_kill().expect("it runs");
        within("the end of the witness", self.child.wait()).await.expect("it is our child");
        assert!(!processes::alive(self.process.pid, self.process.start_ticks));
    }
}
