//! A server of its own for a test: `initdb` and `postgres` of the machine, in a temporary directory, on loopback and a socket.
//! Tests of the program include this file as well.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// The role that owns everything.
pub(crate) const OWNER: &str = "dendrer_test";

/// A running server. Ends, and is removed, with its value.
#[derive(Debug)]
pub(crate) struct Server {
    bin: PathBuf,
    pub(crate) dir: tempfile::TempDir,
    user: Option<(u32, u32)>,
    pub(crate) port: u16,
    settings: Vec<String>,
    child: Option<Child>,
    pub(crate) stores: AtomicU64,
}

/// Returns the directory of the programs: the newest of Debian's, or what `PATH` has.
fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = installed
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            let bin = entry.path().join("bin");
            (version >= 15 && bin.join("initdb").exists()).then_some((version, bin))
        })
        .collect();
    versions.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_path = || std::env::split_paths(&path).find(|dir| dir.join("initdb").exists());
    versions.pop().map(|(_, bin)| bin).or_else(of_path)
}

/// Returns the user that the server runs as: root may not run one.
#[cfg(unix)]
fn user() -> Option<(u32, u32)> {
    if !rustix::process::getuid().is_root() {
        return None;
    }
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = known.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut parts = line.split(':').skip(2);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody"))
}

impl Server {
    /// Starts a server; `None`, and a loud line, where none is installed.
    pub(crate) fn start() -> Option<Server> {
        Server::start_with(&[])
    }

    pub(crate) fn start_with(settings: &[&str]) -> Option<Server> {
        let Some(bin) = programs() else {
            let must = std::env::var_os("DENDRER_POSTGRES").is_some_and(|value| value == "must");
            assert!(!must, "DENDRER_POSTGRES=must, and no initdb in /usr/lib/postgresql/*/bin or PATH");
            println!("SKIPPED: no PostgreSQL on this machine (apt-get install postgresql)");
            eprintln!("SKIPPED: no PostgreSQL on this machine (apt-get install postgresql)");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("dendrer-pg").tempdir().unwrap();
        let user = user();
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(dir.path(), Some(uid), Some(gid)).unwrap();
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = settings.iter().map(|text| (*text).to_owned()).collect();
        let mut server = Server { bin, dir, user, port, settings, child: None, stores: AtomicU64::new(0) };
        let data = server.data();
        let made = server
            .program("initdb")
            .args(["-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.run();
        Some(server)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn program(&self, name: &str) -> Command {
        use std::os::unix::process::CommandExt as _;
        let mut command = Command::new(self.bin.join(name));
        command.current_dir(self.dir.path()).env("LC_ALL", "C");
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Starts the processes, and waits until the server answers.
    pub(crate) fn run(&mut self) {
        let log = self.dir.path().join("log");
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data());
        let port = format!("port={}", self.port);
        let socket = format!("unix_socket_directories={}", self.dir.path().display());
        for setting in [&port[..], &socket, "listen_addresses=127.0.0.1", "max_connections=100"] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let end = Instant::now() + Duration::from_secs(60);
        while !self.sql("postgres", "select 1").is_ok_and(|answer| answer == "1") {
            assert!(Instant::now() < end, "the server does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Hands files of the data over to the user of the server, who alone may read them.
    pub(crate) fn own(&self, files: &[&str]) {
        use std::os::unix::fs::PermissionsExt as _;
        for file in files {
            let path = self.data().join(file);
            if let Some((uid, gid)) = self.user {
                std::os::unix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
            }
            let mode = if file.ends_with(".key") { 0o600 } else { 0o644 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Kills every process of the server at once, as a machine that goes down would.
    pub(crate) fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let postmaster = child.id();
        let mut all = children_of(postmaster);
        all.push(postmaster);
        // The first one stopped cannot start another.
        signal(postmaster, rustix::process::Signal::STOP);
        all.extend(children_of(postmaster));
        for process in all {
            signal(process, rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
        let _ = std::fs::remove_file(self.data().join("postmaster.pid"));
    }

    /// Ends the server in order.
    pub(crate) fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        signal(child.id(), rustix::process::Signal::INT);
        child.wait().unwrap();
    }

    /// Copies the data of a server that is stopped.
    pub(crate) fn copy_data(&self, from: &Path, to: &Path) {
        assert!(self.child.is_none(), "a running server has no copy of its data");
        let _ = std::fs::remove_dir_all(to);
        let mut copy = Command::new("cp");
        assert!(copy.arg("-a").arg(from).arg(to).status().unwrap().success());
    }

    /// Runs SQL as the owner, with the program `psql`.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> Result<String, String> {
        self.sql_as(OWNER, database, sql)
    }

    pub(crate) fn sql_as(&self, role: &str, database: &str, sql: &str) -> Result<String, String> {
        let psql = ["/usr/bin/psql".into(), self.bin.join("psql")];
        let psql = psql.iter().find(|path: &&PathBuf| path.exists()).unwrap();
        let mut command = Command::new(psql);
        command.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", role]);
        command.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]);
        let done = command.output().unwrap();
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the processes that a process started.
fn children_of(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

pub(crate) fn signal(process: u32, signal: rustix::process::Signal) {
    let process = rustix::process::Pid::from_raw(process as i32).unwrap();
    let _ = rustix::process::kill_process(process, signal);
}

/// Whether the deep rounds run.
pub(crate) fn is_deep() -> bool {
    std::env::var_os("DENDRER_DEEP").is_some_and(|value| value == "1")
}
