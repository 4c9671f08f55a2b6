//! The first directory in the `PATH` of a program that is recorded: its shims, its socket, and the token of the recording.
//!
//! Rule: a directory that another user owns, or may look into, is no directory of a recording.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use dendrer_object::{Value, digest, json};

/// The variable with the directory of the recording.
pub(crate) const RECORD: &str = "DENDRER_RECORD";

/// The beginning of a shim.
const SHIM: &str = "#!/bin/sh\n# dendrer mcp-shim\n";

/// The file with the token.
const TOKEN: &str = "recorder.json";

/// The socket.
const SOCKET: &str = "socket";

/// The longest path of a socket, in bytes (`sun_path`, the shortest of all systems).
const SOCKET_PATH_MAX: usize = 100;

/// The use that a recorder makes of shims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It keeps copies.
    Record,
    /// It answers from a record.
    Play,
}

/// A directory of shims. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ShimDir {
    path: PathBuf,
    pub(crate) token: String,
}

/// Whether a name can be that of a shim.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\0', '\n']) && !matches!(name, "." | ".." | TOKEN | SOCKET)
}

impl ShimDir {
    /// Makes a directory with a shim for each name. `program` are the words that run dendrer.
    pub(crate) fn make(names: &[String], program: &[String], purpose: Purpose) -> io::Result<ShimDir> {
        if let Some(bad) = names.iter().find(|name| !is_name(name)) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{bad:?} is no name of a program"),
            ));
        }
        let random = || -> io::Result<[u8; 32]> {
            let mut bytes = [0; 32];
            let system = ring::rand::SystemRandom::new();
            ring::rand::SecureRandom::fill(&system, &mut bytes)
                .map_err(|_| io::Error::other("the system gave no random bytes"))?;
            Ok(bytes)
        };
        let name = format!("dendrer-{}", &digest::hex(&random()?)[..16]);
        let own = std::env::temp_dir();
        let fits = own.join(&name).join(SOCKET).as_os_str().len() <= SOCKET_PATH_MAX;
        let path = if fits { own } else { PathBuf::from("/tmp") }.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let dir = ShimDir { path, token: digest::hex(&random()?) };
        let mode = if purpose == Purpose::Record { "record" } else { "play" };
        let words = [("mode", Value::from(mode)), ("token", Value::from(dir.token.as_str()))];
        dir.file(TOKEN, 0o600, &json::to_vec(&Value::record(words)))?;
        for name in names {
            let words: Vec<String> = program.iter().chain([name]).map(|word| quoted(word)).collect();
            let (name_word, program) = words.split_last().expect("the name is one of the words");
            let text = format!("{SHIM}exec {} mcp-shim -- {name_word} \"$@\"\n", program.join(" "));
            dir.file(name, 0o700, text.as_bytes())?;
        }
        Ok(dir)
    }

    fn file(&self, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(mode).open(self.path.join(name))?.write_all(bytes)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }
}

impl Drop for ShimDir {
    fn drop(&mut self) {
        // Ignored: a directory that stays is not used by any later recording.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The recording that a directory is of.
#[derive(Debug)]
pub(crate) struct FoundRecorder {
    pub(crate) socket: PathBuf,
    pub(crate) token: String,
    pub(crate) purpose: Purpose,
}

/// Finds the recording that a directory is of. The error is the reason why it is another one.
pub(crate) fn find(dir: &Path) -> Result<FoundRecorder, &'static str> {
    let own = rustix::process::geteuid().as_raw();
    let is_ours = |found: &fs::Metadata| found.uid() == own && found.mode() & 0o077 == 0;
    let found = fs::symlink_metadata(dir).map_err(|_| "it is not there")?;
    if !found.is_dir() || !is_ours(&found) {
        return Err("it is not a directory of this user alone");
    }
    let token = dir.join(TOKEN);
    let found = fs::symlink_metadata(&token).map_err(|_| "it is no directory of a recording")?;
    if !found.is_file() || !is_ours(&found) {
        return Err("its token is not a file of this user alone");
    }
    let words = fs::read(&token).ok().and_then(|bytes| json::parse_door(&bytes).ok());
    let text = |name: &str| words.as_ref()?.get(name)?.as_str().map(str::to_owned);
    let purpose = match text("mode").as_deref() {
        Some("record") => Purpose::Record,
        Some("play") => Purpose::Play,
        _ => return Err("its token cannot be read"),
    };
    let token = text("token").ok_or("its token cannot be read")?;
    Ok(FoundRecorder { socket: dir.join(SOCKET), token, purpose })
}

/// Whether a directory may be that of a recording, of whatever owner.
pub(crate) fn looks_like_one(dir: &Path) -> bool {
    fs::symlink_metadata(dir.join(TOKEN)).is_ok()
}

/// Whether a file is a shim, of whatever recording.
pub(crate) fn is_shim(file: &Path) -> bool {
    let mut head = [0; SHIM.len()];
    let read = fs::File::open(file).and_then(|mut file| io::Read::read_exact(&mut file, &mut head));
    read.is_ok() && head == *SHIM.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_directory_that_others_may_look_into_is_none_of_a_recording() {
        let dir = ShimDir::make(&["npx".to_owned()], &["it's".to_owned()], Purpose::Record).unwrap();
        let found = find(dir.path()).unwrap();
        assert_eq!((found.token.as_str(), found.purpose), (dir.token.as_str(), Purpose::Record));
        assert!(is_shim(&dir.path().join("npx")) && !is_shim(&dir.path().join(TOKEN)));
        let text = fs::read_to_string(dir.path().join("npx")).unwrap();
        assert!(text.ends_with("exec 'it'\\''s' mcp-shim -- 'npx' \"$@\"\n"), "{text}");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        mode(dir.path(), 0o750);
        assert_eq!(find(dir.path()).unwrap_err(), "it is not a directory of this user alone");
        mode(dir.path(), 0o700);
        mode(&dir.path().join(TOKEN), 0o644);
        assert_eq!(find(dir.path()).unwrap_err(), "its token is not a file of this user alone");
        mode(&dir.path().join(TOKEN), 0o600);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(find(&link).is_err() && find(Path::new("/nowhere/at/all")).is_err());
        let path = dir.path().to_owned();
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn names_are_those_of_files() {
        for name in ["", ".", "..", "a/b", "socket", "recorder.json", "a\nb"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name("npx") && is_name("my-server.sh"));
    }
}
