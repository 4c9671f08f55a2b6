//! Running the program and looking at what it said.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use dendrer_object::bundle::{Bundle, Sealed};
use dendrer_object::{Pointer, Value, json};

use crate::schema::{Extent, check_events, check_items, check_output};

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Checks each document against its schema. Returns the items of an interrupted stream.
    fn check(&self, extent: Extent) -> Vec<serde_json::Value> {
        check_output(&self.stderr, Extent::Full);
        check_output(&self.stdout, extent)
    }
}

/// Tells whether file systems can be mounted in a namespace, and says so loudly if not.
#[cfg(unix)]
pub(crate) fn can_mount() -> bool {
    let may = Command::new("unshare").args(["-Urm", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    let can = may.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("SKIPPED: no file system can be mounted here, not even in a namespace");
    }
    can
}

/// Tells whether the calls of a program can be struck from outside, and says so loudly if not.
pub(crate) fn can_strace() -> bool {
    let can = Command::new("strace").arg("-V").output().is_ok();
    if !can {
        eprintln!("SKIPPED: no strace");
    }
    can
}

/// A directory with a home of its own, so that tests never meet a user's keys.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().unwrap() }
    }

    /// A place with an empty store.
    pub(crate) fn with_store() -> Place {
        let place = Place::new();
        place.ok(&["init"]);
        place
    }

    /// A place whose store is that of the demo, to write to.
    pub(crate) fn with_demo() -> Place {
        let place = Place::new();
        place.ok(&["demo", ".", "--no-tour"]);
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The folder of the program's own files in the user's configuration.
    pub(crate) fn config(&self) -> PathBuf {
        config_in(self.path())
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(self.path(), args);
        command.current_dir(self.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran_with(args, self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    /// Runs a script that mounts what it likes, in a namespace of its own, with the program as `$D`. Returns what the steps
    /// left that the script wrote to `NAME.out`, `NAME.err` and `NAME.rc`.
    #[cfg(unix)]
    pub(crate) fn in_namespace(&self, script: &str) -> impl Fn(&str) -> Ran {
        let output = Command::new("unshare")
            .args(["-Urm", "sh", "-c", script])
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("D", env!("CARGO_BIN_EXE_dendrer"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str, part: &str| {
            std::fs::read_to_string(self.path().join(format!("{name}.{part}"))).unwrap()
        };
        move |name| {
            let ran = Ran {
                code: read(name, "rc").trim().parse().unwrap(),
                stdout: read(name, "out"),
                stderr: read(name, "err"),
            };
            ran.check(Extent::Full);
            ran
        }
    }

    pub(crate) fn run_with(&self, args: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writer = std::thread::spawn(move || {
            // The program may be done before it has read everything.
            let _ = stdin.write_all(&input);
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        ran_with(args, output)
    }

    /// Runs what must succeed, and returns its answer.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Runs `erase`, or an export that withholds a value, and names each place that is asked for with a flag.
    pub(crate) fn naming(&self, flag: &str, args: &[&str]) -> Ran {
        let mut args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        for _ in 0..9 {
            let ran = self.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
            let open = ran.stderr.lines().find_map(|line| line.strip_prefix("note: the places: "));
            let Some(open) = open.filter(|_| ran.code == 5) else { return ran };
            args.extend(open.split(' ').flat_map(|open| [flag.to_owned(), open.to_owned()]));
        }
        panic!("{args:?} asks for ever");
    }

    /// Runs with `--json` and returns the document, whatever the exit code.
    pub(crate) fn json(&self, args: &[&str]) -> (i32, Value) {
        let ran = self.run(&[args, &["--json"]].concat());
        (ran.code, parse(&ran.stdout))
    }
}

/// Leaves fields out of each record of a bundle, and nothing else: no search looks for what follows from them.
pub(crate) fn strip(file: impl AsRef<Path>, fields: &[&str]) {
    let mut bundle = Bundle::parse(&std::fs::read(&file).unwrap()).unwrap();
    let places: Vec<Pointer> = fields.iter().map(|field| field.parse().unwrap()).collect();
    let entries: Vec<_> = bundle.positions().map(|(_, entry)| entry.clone()).collect();
    for (sealed, entry) in bundle.records.iter_mut().zip(entries) {
        let record = sealed.open(&entry, bundle.store).unwrap();
        let is_there =
            |place: &Pointer| record.body().fields().iter().any(|field| place.contains(&field.pointer));
        if places.iter().any(is_there) {
            *sealed = Sealed::of(&record.without(&places));
        }
    }
    std::fs::write(&file, bundle.write(&dendrer_store::split)).unwrap();
}

fn config_in(home: &Path) -> PathBuf {
    home.join(if cfg!(windows) {
        "AppData/dendrer"
    } else if cfg!(target_os = "macos") {
        "Library/Application Support/dendrer"
    } else {
        ".config/dendrer"
    })
}

/// Gives a command a user who is at home there.
pub(crate) fn at_home<'c>(command: &'c mut Command, home: &Path) -> &'c mut Command {
    // The second is where Windows keeps what is a user's own.
    command.env("HOME", home).env("APPDATA", home.join("AppData"))
}

fn program(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dendrer"));
    command.args(args).env_clear().env("TZ", "UTC").env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if cfg!(windows) {
        // Parts of the system are found by the first, and the others are the only place for temporary files.
        command.envs(
            ["SYSTEMROOT", "TEMP", "TMP"]
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        );
    }
    at_home(&mut command, home);
    command
}

pub(crate) fn ran(output: Output) -> Ran {
    ran_with(&[], output)
}

/// As [`ran`], for an answer to `args`: `--fields` leaves members out of its documents.
pub(crate) fn ran_with(args: &[&str], output: Output) -> Ran {
    let ran = Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    if args.first() == Some(&"export") && args.contains(&"jsonl") && ran.code == 0 {
        check_events(&ran.stdout);
    }
    let is_cut = args.iter().any(|arg| arg.starts_with("--fields"));
    let extent = if is_cut { Extent::Chosen } else { Extent::Full };
    let rest = ran.check(extent);
    if args.contains(&"--jsonl") {
        check_items(args[0], &rest, extent);
    }
    ran
}

/// Copies a directory and what is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Reads the one document of an answer.
pub(crate) fn parse(text: &str) -> Value {
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "exactly one document: {text}");
    // Read from a file or a pipe that `ran` did not see, and perhaps cut by `--fields`.
    check_output(text, Extent::Chosen);
    written(lines[0])
}

/// Reads what an answer prints, in which names are those of the user, as it is stored.
pub(crate) fn written(text: &str) -> Value {
    let value = json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    dendrer_object::tag::from_user_names(&value)
}

/// The demo, made once for all tests that only read it.
pub(crate) fn demo() -> Demo {
    static DEMO: OnceLock<PathBuf> = OnceLock::new();
    let path = DEMO.get_or_init(|| {
        // Kept until the test program ends; a later test program makes its own.
        let place = Place::new();
        place.ok(&["demo", "--no-tour"]);
        place.dir.keep()
    });
    Demo { home: path.clone() }
}

/// The directory of the demo.
pub(crate) struct Demo {
    home: PathBuf,
}

impl Demo {
    pub(crate) fn dir(&self) -> PathBuf {
        self.home.join("dendrer-demo")
    }

    /// The folder of the program's own files in the user's configuration.
    pub(crate) fn config(&self) -> PathBuf {
        config_in(&self.home)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(&self.home, args);
        command.current_dir(self.dir());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran_with(args, self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    pub(crate) fn json(&self, args: &[&str]) -> (i32, Value) {
        let ran = self.run(&[args, &["--json"]].concat());
        (ran.code, parse(&ran.stdout))
    }
}
