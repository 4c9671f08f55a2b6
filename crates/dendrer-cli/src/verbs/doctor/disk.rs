//! What there is to know about the disk that a store lies on: does a sync work and how long does it take, how much
//! room is left, and is it a local file system.

use dendrer_object::Code;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(unix)]
use dendrer_view::count;
use dendrer_view::doctor::DoctorCheck;

/// Below this, the next long recording ends with a full disk.
const ROOM_LOW: u64 = 256 << 20;

/// A disk that takes longer to confirm a write than this makes every acknowledgement slow.
const SYNC_SLOW: Duration = Duration::from_millis(200);

/// File systems on which advisory locks between machines do not hold, or may not.
const REMOTE: &[&str] = &[
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "lustre",
    "beegfs",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.s3fs",
    "fuse.rclone",
];

/// Looks at the disk below a directory.
pub(super) fn checks(dir: &Path) -> Vec<DoctorCheck> {
    let mut checks = vec![sync(dir)];
    checks.extend(room(dir));
    checks.extend(kind(dir));
    checks
}

fn sync(dir: &Path) -> DoctorCheck {
    const NAME: &str = "sync";
    // Gone again in any case, and of no meaning if it stays.
    let file = tempfile::Builder::new().prefix("doctor-").suffix(".tmp").tempfile_in(dir);
    let mut file = match file {
        Ok(file) => file,
        Err(error) => {
            return DoctorCheck::warn(NAME, format!("nothing can be written here: {error}"))
                .code(Code::E0801);
        }
    };
    let begin = Instant::now();
    match file.write_all(&[0; 4096]).and_then(|()| file.as_file().sync_data()) {
        Err(error) => {
            DoctorCheck::fail(NAME, Code::E0801, format!("the disk does not confirm a write: {error}"))
        }
        Ok(()) => {
            let took = begin.elapsed();
            let what = format!("a write is confirmed in {:.1} ms", took.as_secs_f64() * 1000.0);
            if took > SYNC_SLOW { DoctorCheck::warn(NAME, what) } else { DoctorCheck::ok(NAME, what) }
        }
    }
}

#[cfg(unix)]
fn room(dir: &Path) -> Option<DoctorCheck> {
    const NAME: &str = "room";
    let about = rustix::fs::statvfs(dir).ok()?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let what = format!("{} free", count(free >> 20, "megabyte", "megabytes"));
    Some(if free < ROOM_LOW {
        DoctorCheck::warn(NAME, what).next(&["dendrer", "gc", "-n"])
    } else {
        DoctorCheck::ok(NAME, what)
    })
}

#[cfg(not(unix))]
fn room(_: &Path) -> Option<DoctorCheck> {
    let _ = ROOM_LOW;
    None
}

/// Says what file system it is, where the system tells.
fn kind(dir: &Path) -> Option<DoctorCheck> {
    const NAME: &str = "disk";
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = kind_of(&mounts, &dir.canonicalize().ok()?)?;
    Some(match () {
        () if REMOTE.contains(&kind.as_str()) => DoctorCheck::warn(
            NAME,
            format!(
                "{kind}, a network file system: locks between writers may not hold there; use a local one"
            ),
        ),
        () if kind.starts_with("fuse") => {
            DoctorCheck::warn(NAME, format!("{kind}: whether locks and syncs hold there is not known"))
        }
        () if kind == "tmpfs" || kind == "ramfs" => {
            DoctorCheck::warn(NAME, format!("{kind}: gone when the machine stops"))
        }
        () => DoctorCheck::ok(NAME, format!("{kind}, a local file system")),
    })
}

/// Finds the file system of a path in the table of mounts: that of the longest mount point above it, the last of
/// several.
fn kind_of(mounts: &str, path: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let point = unescape(front.split(' ').nth(4)?);
        Some((point, back.split(' ').next()?))
    });
    let above = mounts.filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}

/// Blanks and the like stand in the table as three octal digits.
fn unescape(text: &str) -> String {
    let known = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    known.iter().fold(text.to_owned(), |text, (escape, c)| text.replace(escape, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_above_a_path_is_its_file_system() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:25 / /home rw - btrfs /dev/sdb rw
31 30 0:26 / /home/a\\040b rw master:2 - nfs4 server:/x rw
32 22 0:27 / /home rw - xfs /dev/sdc rw
";
        for (path, kind) in
            [("/etc", "ext4"), ("/home/c", "xfs"), ("/home/a b/store", "nfs4"), ("/homes", "ext4")]
        {
            assert_eq!(kind_of(mounts, Path::new(path)).as_deref(), Some(kind), "{path}");
        }
        assert_eq!(kind_of("nonsense", Path::new("/")), None);
    }
}
