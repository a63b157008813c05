//! A root of its own: processes, files, network and names of it are nobody else's.

use crate::{path, said};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine.
const DEADLINE: Duration = Duration::from_secs(90);

/// Kernel file systems and devices, as every container has them.
const FURNISH: &str = "\
set -e
root=$1; user=$2; shift 2
mount --make-rprivate /
mount --bind \"$root\" \"$root\"
mkdir -p \"$root/proc\" \"$root/sys\" \"$root/dev\" \"$root/run\" \"$root/tmp\"
mount -t proc proc \"$root/proc\"
mount --bind \"$root/proc/sys\" \"$root/proc/sys\"
mount -o remount,ro,bind \"$root/proc/sys\"
mount --rbind /sys \"$root/sys\"
mount -o remount,ro,bind \"$root/sys\"
mount -t tmpfs -o mode=755 dev \"$root/dev\"
for one in null zero full random urandom tty; do
    touch \"$root/dev/$one\"
    mount --bind \"/dev/$one\" \"$root/dev/$one\"
done
mkdir \"$root/dev/pts\" \"$root/dev/shm\"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts \"$root/dev/pts\"
ln -s pts/ptmx \"$root/dev/ptmx\"
ln -s /proc/self/fd \"$root/dev/fd\"
mount -t tmpfs -o mode=755 run \"$root/run\"
mount -t tmpfs -o mode=1777 tmp \"$root/tmp\"
busybox ip link set lo up
exec /usr/sbin/chroot --userspec=\"$user\" \"$root\" \"$@\"
";

/// A process that is the first of its namespaces, and everything beside it.
pub(crate) struct Room {
    outside: Child,
    init: u32,
    /// Number of the user that programs run as.
    user: u32,
    lines: Receiver<String>,
}

impl Drop for Room {
    fn drop(&mut self) {
        // It takes process 1 of its namespace along, and that everything inside.
        let _ = self.outside.kill();
        let _ = self.outside.wait();
    }
}

impl Room {
    /// Starts a program as process 1 of a root.
    pub(crate) fn enter(root: &Path, words: &[&str], env: &[(&str, &str)], user: u32) -> Self {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--fork"]);
        unshare.args(["--kill-child=KILL", "--"]);
        unshare
            .args(["sh", "-c", FURNISH, "sh", path(root), &format!("{user}:{user}")])
            .args(words);
        unshare.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").envs(env.iter().copied());
        unshare.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut outside = unshare.spawn().expect("unshare starts");
        let (sender, lines) = mpsc::channel();
        let streams: [Option<Box<dyn std::io::Read + Send>>; 2] = [
            outside.stdout.take().map(|stream| Box::new(stream) as _),
            outside.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in streams.into_iter().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let _ = sender.send(line); // read to the end, whoever listens
                }
            });
        }
        Self { outside, init: 0, user, lines }
    }

    /// Waits for a line of the first process. All lines until then.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str) -> String {
        let mut heard = String::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(DEADLINE) else {
                panic!("`{what}` was not said:\n{heard}");
            };
            heard.push_str(&line);
            heard.push('\n');
            if line.contains(what) {
                break;
            }
        }
        assert!(self.finds_init(), "it has no first process: {heard}");
        heard
    }

    fn finds_init(&mut self) -> bool {
        let children = format!("/proc/{0}/task/{0}/children", self.outside.id());
        let children = fs::read_to_string(children).unwrap_or_default();
        let init = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
        self.init = init.unwrap_or_default();
        self.init != 0
    }

    /// Waits until a systemd answers. Nothing that can be watched tells when.
    #[track_caller]
    pub(crate) fn boots(&mut self) {
        let deadline = Instant::now() + DEADLINE;
        let env = [("PATH", "/usr/bin:/bin")];
        while Instant::now() < deadline {
            if self.finds_init() && self.is_entered() {
                let asked = self.tries(&["systemctl", "is-system-running"], &env);
                if asked.status.success() || said(&asked).contains("degraded") {
                    return;
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("systemd did not come up: {:?}", self.lines.try_iter().collect::<Vec<_>>());
    }

    /// Whether its first process is in its own root already.
    fn is_entered(&self) -> bool {
        fs::read_link(format!("/proc/{}/root", self.init)).is_ok_and(|root| root != Path::new("/"))
    }

    fn inside(&self, words: &[&str], env: &[(&str, &str)]) -> Command {
        let mut enter = Command::new("nsenter");
        enter.args(["-t", &self.init.to_string(), "-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w"]);
        enter.args(["-S", &self.user.to_string(), "-G", &self.user.to_string()]);
        enter.args(words).env_clear().envs(env.iter().copied()).stdin(Stdio::null());
        enter
    }

    /// Runs a program in the room, however it ends.
    pub(crate) fn tries(&self, words: &[&str], env: &[(&str, &str)]) -> Output {
        self.inside(words, env).output().expect("nsenter starts")
    }

    /// Runs a program that has to end well; what it printed.
    #[track_caller]
    pub(crate) fn does(&self, words: &[&str], env: &[(&str, &str)]) -> String {
        let done = self.tries(words, env);
        assert!(done.status.success(), "{words:?}: {}", said(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

/// An executable in a root, with the folders above it.
pub(crate) fn install(program: &Path, root: &Path, at: &str) -> PathBuf {
    let to = root.join(at);
    fs::create_dir_all(to.parent().expect("a folder")).unwrap();
    fs::copy(program, &to).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    to
}

/// A shell that needs nothing: Debian's `busybox-static`.
pub(crate) fn shell() -> PathBuf {
    let busybox = crate::run("sh", &["-c", "command -v busybox"]);
    let busybox = PathBuf::from(busybox.trim());
    let told = crate::run("readelf", &["-l", path(&busybox)]);
    assert!(!told.contains("INTERP"), "busybox is not static; install `busybox-static`");
    busybox
}
