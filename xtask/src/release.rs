//! The files of a release: for each target of the toolchain an archive with the program, licences, manual and completions; the
//! wheel; the list of components (CycloneDX); `SHA256SUMS`; and notes from `CHANGELOG.md`.
//!
//! The same commit gives the same bytes: times are those of the commit, names are sorted, owners are left out, and no path of the
//! machine is in a program.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const SHELLS: [&str; 6] = ["bash", "zsh", "fish", "powershell", "nushell", "elvish"];

type Failed = String;

/// Makes a release in a directory that is not there yet. With a program, only that one is packed, as of the toolchain's own
/// target; else each target is built, and the wheel.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let (program, dir) = match arguments {
        [dir] => (None, dir),
        ["--program", program, dir] => (Some(Path::new(program)), dir),
        _ => {
            eprintln!("usage: cargo run -p xtask -- release [--program FILE] DIR");
            return ExitCode::from(2);
        }
    };
    match Release::new(root, Path::new(dir)).and_then(|release| release.make(program)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("release: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Release<'a> {
    root: &'a Path,
    dir: PathBuf,
    version: String,
    /// Seconds since 1970 of the commit.
    time: String,
}

/// Runs a command and returns what it printed.
fn printed(command: &mut Command) -> Result<Vec<u8>, Failed> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err(format!("{command:?}: {}", output.status)) }
}

fn line(command: &mut Command) -> Result<String, Failed> {
    Ok(String::from_utf8_lossy(&printed(command)?).trim().to_owned())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failed> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(path, bytes));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

impl<'a> Release<'a> {
    fn new(root: &'a Path, dir: &Path) -> Result<Release<'a>, Failed> {
        let git = |arguments: &[&str]| line(Command::new("git").current_dir(root).args(arguments));
        let time = git(&["log", "-1", "--format=%ct"])?;
        let here = std::env::current_dir().map_err(|error| error.to_string())?;
        let dir = here.join(dir);
        fs::create_dir(&dir).map_err(|error| format!("{}: {error}; name a new directory", dir.display()))?;
        Ok(Release { root, dir, version: env!("CARGO_PKG_VERSION").to_owned(), time })
    }

    fn make(&self, program: Option<&Path>) -> Result<(), Failed> {
        let about = line(Command::new("rustc").arg("-vV"))?;
        let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
        match program {
            Some(program) => self.pack(&host, program)?,
            None => {
                // Without rustup the toolchain has its own target alone.
                let installed = Command::new("rustup").args(["target", "list", "--installed"]).output();
                let targets = installed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
                let targets = targets.ok().filter(|targets| !targets.trim().is_empty()).unwrap_or(host);
                for target in targets.lines() {
                    let program = self.build(target)?;
                    self.pack(target, &program)?;
                }
                self.wheel()?;
                self.components()?;
            }
        }
        self.notes()?;
        self.sums()
    }

    /// Builds the program for a target, without a path of this machine in it; linked whole where the target allows.
    fn build(&self, target: &str) -> Result<PathBuf, Failed> {
        let mut flags = self.without_paths();
        if target.contains("musl") {
            flags += " -C target-feature=+crt-static";
        }
        let mut cargo = Command::new("cargo");
        cargo.current_dir(self.root).args([
            "build",
            "--release",
            "--locked",
            "-p",
            "dendrer-cli",
            "--target",
            target,
        ]);
        printed(cargo.env("RUSTFLAGS", flags).env("SOURCE_DATE_EPOCH", &self.time))?;
        let name = if target.contains("windows") { "dendrer.exe" } else { "dendrer" };
        let built =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), PathBuf::from);
        Ok(built.join(target).join("release").join(name))
    }

    /// The flags of a compiler that leaves the paths of this machine out.
    fn without_paths(&self) -> String {
        let home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
        let mut flags = format!("--remap-path-prefix={}=/dendrer", self.root.display());
        if let Ok(home) = home {
            flags += &format!(" --remap-path-prefix={home}=/cargo");
        }
        flags
    }

    /// Packs a program with its licences, manual and completions. These are printed by the program, where it runs here.
    fn pack(&self, target: &str, program: &Path) -> Result<(), Failed> {
        let name = format!("dendrer-{}-{target}", self.version);
        let inside = self.dir.join(&name);
        let file = program.file_name().unwrap_or(OsStr::new("dendrer"));
        let bytes = fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
        write(&inside.join(file), &bytes)?;
        let copied = inside.join(file);
        let mode = fs::metadata(program).map_err(|error| error.to_string())?.permissions();
        fs::set_permissions(&copied, mode).map_err(|error| error.to_string())?;
        for text in ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "CHANGELOG.md"] {
            let bytes = fs::read(self.root.join(text)).map_err(|error| format!("{text}: {error}"))?;
            write(&inside.join(text), &bytes)?;
        }
        let runs =
            Command::new(&copied).arg("--version").output().is_ok_and(|output| output.status.success());
        match runs {
            true => self.documents(&copied, &inside)?,
            false => println!("{name}: no manual and no completions, as its program does not run here"),
        }
        let archive = self.dir.join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        tar.current_dir(&self.dir).args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--mode=go=rX,u+rw,a-s",
        ]);
        let packed = printed(tar.args([&format!("--mtime=@{}", self.time), "-cf", "-", &name]))?;
        let mut gzip = Command::new("gzip");
        let mut gzip = gzip.args(["-n", "-9"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let gzip = gzip.as_mut().map_err(|error| format!("gzip: {error}"))?;
        let mut input = gzip.stdin.take().ok_or("gzip has no input")?;
        let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut input, &packed));
        let mut zipped = Vec::new();
        let mut output = gzip.stdout.take().ok_or("gzip has no output")?;
        std::io::Read::read_to_end(&mut output, &mut zipped).map_err(|error| error.to_string())?;
        let fed = feeder.join().is_ok_and(|fed| fed.is_ok());
        if !fed || !gzip.wait().is_ok_and(|status| status.success()) {
            return Err("gzip did not end well".to_owned());
        }
        write(&archive, &zipped)?;
        fs::remove_dir_all(&inside).map_err(|error| error.to_string())
    }

    fn documents(&self, program: &Path, inside: &Path) -> Result<(), Failed> {
        let whole = printed(Command::new(program).arg("man"))?;
        let text = String::from_utf8_lossy(&whole).into_owned();
        let verbs = text.split("dendrer\\-").skip(1).filter_map(|rest| rest.split_once("(1)"));
        for (verb, _) in
            verbs.filter(|(verb, _)| !verb.is_empty() && verb.bytes().all(|c| c.is_ascii_lowercase()))
        {
            let page = printed(Command::new(program).args(["man", verb]))?;
            write(&inside.join(format!("man/dendrer-{verb}.1")), &page)?;
        }
        write(&inside.join("man/dendrer.1"), &whole)?;
        for shell in SHELLS {
            let script = printed(Command::new(program).args(["completions", shell]))?;
            write(&inside.join(format!("completions/dendrer.{shell}")), &script)?;
        }
        Ok(())
    }

    /// The wheel, by the maturin that `scripts/python.sh` installs, or that of the path.
    fn wheel(&self) -> Result<(), Failed> {
        let own = self.root.join("target/wheel/bin/maturin");
        let maturin = if own.exists() { own } else { PathBuf::from("maturin") };
        let mut build = Command::new(maturin);
        build.current_dir(self.root).args(["build", "--release", "--quiet", "--out"]).arg(&self.dir);
        printed(build.env("RUSTFLAGS", self.without_paths()).env("SOURCE_DATE_EPOCH", &self.time)).map(drop)
    }

    /// The components of the program, as `cargo cyclonedx` lists them.
    fn components(&self) -> Result<(), Failed> {
        let has = Command::new("cargo").args(["cyclonedx", "--version"]).output();
        if !has.is_ok_and(|output| output.status.success()) {
            println!("no list of components: cargo-cyclonedx is not installed");
            return Ok(());
        }
        let name = format!("dendrer-{}.cdx", self.version);
        let mut list = Command::new("cargo");
        list.current_dir(self.root).env("SOURCE_DATE_EPOCH", &self.time);
        list.args(["cyclonedx", "--quiet", "--format", "json", "--all-features", "--manifest-path"]);
        printed(list.args(["crates/dendrer-cli/Cargo.toml", "--override-filename", &name]))?;
        // It writes one file beside each manifest of the workspace, with the path of this checkout in it.
        let file = format!("{name}.json");
        let crates = fs::read_dir(self.root.join("crates")).map_err(|error| error.to_string())?;
        let places = crates.filter_map(|one| Some(one.ok()?.path())).chain([self.root.join("xtask")]);
        for made in places.map(|place| place.join(&file)).filter(|made| made.exists()) {
            if made.parent().is_some_and(|parent| parent.ends_with("dendrer-cli")) {
                let text =
                    fs::read_to_string(&made).map_err(|error| format!("{}: {error}", made.display()))?;
                let text = text.replace(&self.root.display().to_string(), "/dendrer");
                write(&self.dir.join(&file), text.as_bytes())?;
            }
            fs::remove_file(&made).map_err(|error| format!("{}: {error}", made.display()))?;
        }
        Ok(())
    }

    /// The part of the change log about this version, or about what is not released yet.
    fn notes(&self) -> Result<(), Failed> {
        let log = fs::read_to_string(self.root.join("CHANGELOG.md")).map_err(|error| error.to_string())?;
        let own = format!("\n## {}", self.version);
        let begin = log
            .find(&own)
            .or_else(|| log.find("\n## Unreleased"))
            .ok_or("CHANGELOG.md has no part for it")?;
        let rest = &log[begin + 1..];
        let end = rest[1..].find("\n## ").map_or(rest.len(), |end| end + 2);
        write(&self.dir.join("NOTES.md"), rest[..end].as_bytes())
    }

    fn sums(&self) -> Result<(), Failed> {
        let files = fs::read_dir(&self.dir).map_err(|error| error.to_string())?;
        let mut names: Vec<_> = files.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        let sums = printed(Command::new("sha256sum").current_dir(&self.dir).args(&names))?;
        print!("{}", String::from_utf8_lossy(&sums));
        write(&self.dir.join("SHA256SUMS"), &sums)
    }
}
