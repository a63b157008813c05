//! Real proxies in front of the service, with the files of `docs/proxies`.

use super::{World, within};
use rcgen::{CertificateParams, KeyPair};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};

/// A program that is installed here.
pub fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}

/// A port, a certificate for `localhost`, and the processes that serve there.
pub struct Edge {
    /// Address of the proxy, without a path.
    pub origin: String,
    /// The certificate (PEM).
    pub certificate: Vec<u8>,
    dir: PathBuf,
    port: u16,
    running: Vec<Child>,
}

impl Edge {
    /// Chooses the port and makes the certificate; nothing runs yet.
    pub fn new(world: &World) -> Self {
        let dir = world.root.join("edge");
        fs::create_dir(&dir).expect("a new directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").pem().into_bytes();
        fs::write(dir.join("edge.crt"), &certificate).expect("a file");
        fs::write(dir.join("edge.key"), key.serialize_pem()).expect("a file");
        let origin = format!("https://localhost:{port}");
        Self { origin, certificate, dir, port, running: Vec::new() }
    }

    /// A path in the directory of this proxy.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Starts nginx with a file of `docs/proxies`; it serves until the test ends.
    pub async fn nginx(&mut self, world: &World, program: &Path, file: &str) {
        self.nginx_of(world, program, &example(file)).await;
    }

    /// The same with one fault: `from` in the file becomes `to`.
    /// Whoever served before has ended.
    pub async fn faulty_nginx(
        &mut self,
        world: &World,
        program: &Path,
        file: &str,
        (from, to): (&str, &str),
    ) {
        for mut child in self.running.drain(..) {
            within("the end of nginx", child.kill()).await.expect("it is our child");
        }
        let text = example(file);
        assert!(text.contains(from), "{file} has no `{from}`");
        self.nginx_of(world, program, &text.replace(from, to)).await;
    }

    async fn nginx_of(&mut self, world: &World, program: &Path, site: &str) {
        let dir = self.dir.display();
        let site = site
            .replace("listen 443 ssl", &format!("listen 127.0.0.1:{} ssl", self.port))
            .replace("/etc/ssl/SVC.EXAMPLE.ORG", &format!("{dir}/edge"))
            .replace("SVC.EXAMPLE.ORG", "localhost")
            .replace("/etc/nginx/svc.htpasswd", &format!("{dir}/svc.htpasswd"))
            .replace("/run/svc-signer/socket", &format!("{dir}/signer"))
            .replace("127.0.0.1:7621", &format!("127.0.0.1:{}", world.port()));
        let mut whole = format!(
            "daemon off;\nmaster_process off;\npid {dir}/nginx.pid;\nerror_log stderr notice;\n\
             events {{}}\nhttp {{\naccess_log off;\n\
             proxy_cache_path {dir}/kept keys_zone=kept:1m;\n"
        );
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            whole.push_str(&format!("{kind}_temp_path {dir}/{kind};\n"));
        }
        whole.push_str(&format!("{site}}}\n"));
        let config = self.dir.join("nginx.conf");
        fs::write(&config, whole).expect("a file");
        let mut command = quiet(world, program);
        command.args(["-e", "stderr", "-c"]).arg(&config).stderr(Stdio::piped());
        // It says so once its sockets are open.
        self.run(command, "event method").await;
    }

    /// The same with Caddy.
    pub async fn caddy(&mut self, world: &World, program: &Path) {
        let dir = self.dir.display();
        let pair = format!("tls {dir}/edge.crt {dir}/edge.key");
        let name = format!("localhost:{} {{\n\t{pair}", self.port);
        let site = example("Caddyfile")
            .replace("\nsvc.example.org {", &format!("\n{name}"))
            .replace("127.0.0.1:7621", &format!("127.0.0.1:{}", world.port()));
        // Nothing of this test may reach beyond it: no port for its control, none for plain HTTP.
        let whole = format!("{{\n\tadmin off\n\tauto_https disable_redirects\n}}\n{site}");
        let config = self.dir.join("Caddyfile");
        fs::write(&config, whole).expect("a file");
        let mut command = quiet(world, program);
        command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&config);
        command.env("XDG_DATA_HOME", self.dir.join("data"));
        command.env("XDG_CONFIG_HOME", self.dir.join("config")).stderr(Stdio::piped());
        self.run(command, "serving initial configuration").await;
    }

    /// Starts the signer of `docs/proxies` with this secret.
    pub async fn signer(&mut self, world: &World, python: &Path, secret: &str) {
        let file = self.dir.join("secret");
        fs::write(&file, format!("{secret}\n")).expect("a file");
        let mut command = quiet(world, python);
        command.arg(examples().join("signer.py")).arg(&file).arg(self.dir.join("signer"));
        command.stdout(Stdio::piped()).stderr(Stdio::inherit());
        self.run(command, "ready").await;
    }

    async fn run(&mut self, mut command: Command, word: &str) {
        let mut child = command.spawn().expect("the program starts");
        let pipe: Box<dyn AsyncRead + Send + Unpin> =
            match (child.stdout.take(), child.stderr.take()) {
                (Some(pipe), _) => Box::new(pipe),
                (None, Some(pipe)) => Box::new(pipe),
                (None, None) => panic!("it says nothing that is heard"),
            };
        let mut lines = BufReader::new(pipe).lines();
        let mut said = Vec::new();
        within(word, async {
            while let Some(line) = lines.next_line().await.expect("lines of text") {
                let is_ready = line.contains(word);
                said.push(line);
                if is_ready {
                    return;
                }
            }
            panic!("it ended before it said `{word}`: {said:#?}");
        })
        .await;
        // What it says later is read, so that it never waits for a reader.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        self.running.push(child);
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/proxies")
}

fn example(name: &str) -> String {
    fs::read_to_string(examples().join(name)).expect("an example of the documents")
}

fn quiet(world: &World, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(world.environment()).current_dir(&world.root);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command
}
