use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use dendrer_store::disk::{Disk, Real};
use dendrer_store::faulty::{Crash, DiskFault, Faulty};
use dendrer_store::{Embedded, Memory, Options};

use super::*;
use crate::repo::{Mode, Repo};
use crate::trust::{MemoryTrust, UserTrust};

fn run(name: &str) -> RunName {
    name.parse().unwrap()
}

/// Bytes that repeat nowhere.
fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(size).collect()
}

fn in_memory() -> Vault {
    Vault::open(&Shared::new(Box::new(Memory::new(dendrer_testkit::info(1)))), Arc::new(MemoryTrust::new()))
}

fn dir_of_store(home: &Path) -> PathBuf {
    home.join(".dendrer")
}

/// A store on disk, with keys in files.
fn on_disk(home: &Path) -> Vault {
    let store = Embedded::create(&dir_of_store(home), dendrer_testkit::info(1), Options::untagged()).unwrap();
    Vault::open(&Shared::new(Box::new(store)), Arc::new(UserTrust::at(home.join("config"))))
}

/// The files of the vault, with their bytes.
fn files(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let dir = dir_of_store(home).join("vault");
    let files = std::fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn values_come_back_as_they_were_put() {
    let home = tempfile::tempdir().unwrap();
    for mut vault in [in_memory(), on_disk(home.path())] {
        for size in [0, 1, 251, 252, 253, 4096, 70_000, 1 << 20, 3 << 20] {
            let (bytes, place) = (noise(size, size as u64 + 1), format!("{size}/result/output"));
            let put = vault.put(&run("r"), &place, &bytes).unwrap();
            assert_eq!(put.bytes, size as u64);
            assert!(vault.get(&run("r"), &place).unwrap() == bytes, "{size}");
            assert!(vault.get_as(&run("r"), &place, &put).unwrap() == bytes, "{size}");
            assert_eq!(vault.put(&run("r"), &place, &bytes).unwrap(), put, "the same again");
            assert_eq!(VaultRef::from_value(&put.to_value()), Some(put));
            let other = VaultRef { commitment: Digest([9; 32]), ..put };
            assert_eq!(vault.get_as(&run("r"), &place, &other).unwrap_err().code(), Code::E0301);
        }
        let taken = vault.put(&run("r"), "1/result/output", b"other bytes").unwrap_err();
        assert_eq!(taken.code(), Code::E0106);
        assert_eq!(vault.get(&run("s"), "1/result/output").unwrap_err().code(), Code::E0311);
        assert_eq!(vault.get(&run("r"), "2/result/output").unwrap_err().code(), Code::E0311);
        // Equal bytes have commitments that do not show it.
        let [a, b] = ["a", "b"].map(|place| vault.put(&run("r"), place, b"same").unwrap());
        assert_ne!(a.commitment, b.commitment);
        let report = check(&vault.store, &*vault.trust).unwrap().unwrap();
        assert_eq!((report.entries, report.damaged, report.was_read), (11, vec![], true));
    }
}

#[test]
fn a_second_vault_begins_beside_one_whose_key_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let dir = dir_of_store(home.path());
    let first = MemoryTrust::new();
    let mut vault = Repo::init(&dir, Arc::new(first.clone())).unwrap().vault().unwrap();
    vault.put(&run("r"), "p", &noise(70_000, 1)).unwrap();
    drop(vault);
    // Both keys are lost. As long as the log has not changed its key, nothing takes the place of the vault.
    let second = MemoryTrust::new();
    let open = |trust: &MemoryTrust, mode| Repo::open(&dir, Arc::new(trust.clone()), mode).unwrap();
    let mut locked = open(&second, Mode::Write).vault().unwrap();
    assert_eq!(locked.put(&run("r"), "q", b"new").unwrap_err().code(), Code::E0465);
    drop(locked);
    crate::care::keys::recover(open(&second, Mode::Write), "lost", None).unwrap();
    let mut vault = open(&second, Mode::Write).vault().unwrap();
    assert_eq!(vault.get(&run("r"), "p").unwrap_err().code(), Code::E0465, "unavailable, and not gone");
    let put = vault.put(&run("r"), "q", b"new").unwrap();
    assert_eq!(vault.get_as(&run("r"), "q", &put).unwrap(), b"new");
    assert_eq!(vault.get(&run("r"), "p").unwrap_err().code(), Code::E0465);
    assert_eq!(vault.destroy(&run("r"), "p").unwrap_err().code(), Code::E0465);
    // Bytes under the lost key are neither damage nor litter.
    let names = vault.store.secrets().unwrap().len();
    assert_eq!(vault.sweep(false).unwrap(), 0);
    let report = check(&vault.store, &*vault.trust).unwrap().unwrap();
    assert_eq!((report.entries, report.damaged, report.was_read), (2, vec![], false));
    vault.destroy(&run("r"), "q").unwrap();
    assert_eq!(vault.get(&run("r"), "q").unwrap_err().code(), Code::E0465);
    assert_eq!(vault.store.secrets().unwrap().len(), names - 1);
    drop(vault);
    // The first key turns up again: its values are there.
    let vault = open(&first, Mode::Read).vault().unwrap();
    assert_eq!(vault.get(&run("r"), "p").unwrap(), noise(70_000, 1));
}

#[test]
fn a_rotation_keeps_the_vault() {
    let home = tempfile::tempdir().unwrap();
    let dir = dir_of_store(home.path());
    let trust = MemoryTrust::new();
    let repo = Repo::init(&dir, Arc::new(trust.clone())).unwrap();
    repo.vault().unwrap().put(&run("r"), "p", b"exact").unwrap();
    crate::care::keys::rotate(repo, None).unwrap();
    let mut vault = Repo::open(&dir, Arc::new(trust), Mode::Write).unwrap().vault().unwrap();
    assert_eq!(vault.get(&run("r"), "p").unwrap(), b"exact");
    vault.put(&run("r"), "q", b"more").unwrap();
}

#[test]
fn without_the_key_or_with_another_nothing_is_read() {
    let mut vault = in_memory();
    vault.put(&run("r"), "p", b"secret").unwrap();
    let without = Vault { trust: Arc::new(MemoryTrust::new()), ..vault.clone() };
    let other = Vault { trust: Arc::new(MemoryTrust::new()), ..vault.clone() };
    other.trust.keep_vault_key(vault.store.info().id, &VaultKey::from_bytes([7; 32])).unwrap();
    for mut vault in [without.clone(), other] {
        assert_eq!(vault.get(&run("r"), "p").unwrap_err().code(), Code::E0465);
        assert_eq!(vault.put(&run("r"), "q", b"more").unwrap_err().code(), Code::E0465);
        assert_eq!(vault.destroy(&run("r"), "p").unwrap_err().code(), Code::E0465);
        let report = check(&vault.store, &*vault.trust).unwrap().unwrap();
        assert_eq!((report.entries, report.damaged, report.was_read), (1, vec![], false));
    }
    // A second key would hide that the first is lost.
    assert_eq!(without.trust.vault_key(vault.store.info().id).unwrap(), None);
    assert_eq!(vault.get(&run("r"), "p").unwrap(), b"secret");
}

#[test]
fn a_flipped_byte_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let mut vault = on_disk(home.path());
    let values: Vec<_> = [("a", 100), ("b", 20_000), ("c", 200_000)]
        .map(|(place, size)| (place, noise(size, size as u64)))
        .into();
    for (place, bytes) in &values {
        vault.put(&run("r"), place, bytes).unwrap();
    }
    let names: Vec<PathBuf> = files(home.path()).into_keys().collect();
    assert!(names.len() > 40, "{}", names.len());
    let check_all = |context: &dyn Fn() -> String| {
        let mut refused = 0;
        for (place, bytes) in &values {
            match vault.get(&run("r"), place) {
                Ok(found) => assert!(found == *bytes, "{}", context()),
                Err(error) => {
                    assert_eq!(error.code(), Code::E0305, "{}", context());
                    refused += 1;
                }
            }
        }
        assert!(refused > 0, "{}", context());
        let report = check(&vault.store, &*vault.trust).unwrap().unwrap();
        assert!(!report.damaged.is_empty(), "{}", context());
    };
    for (path, bytes) in files(home.path()) {
        for at in [0, 5, 6, 17, 18, bytes.len() / 2, bytes.len() - 25, bytes.len() - 9, bytes.len() - 1] {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            check_all(&|| format!("{} at {at}", path.display()));
            // Also where the check at the end fits: then the AEAD refuses.
            let body = bad.len() - 8;
            let end = Digest::of(&bad[..body]);
            bad[body..].copy_from_slice(&end.0[..8]);
            std::fs::write(&path, &bad).unwrap();
            let is_mark = bytes.len() < 60;
            let is_kind = at == 5;
            if at < body && !is_mark && !is_kind {
                let read = values.iter().map(|(place, bytes)| (vault.get(&run("r"), place), bytes));
                let wrong = read.filter(|(found, bytes)| found.as_ref().is_ok_and(|found| found != *bytes));
                assert_eq!(wrong.count(), 0, "{} at {at}", path.display());
            }
        }
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        check_all(&|| format!("{} cut", path.display()));
        std::fs::write(&path, &bytes).unwrap();
    }
    // A file in the place of another.
    let all = files(home.path());
    let sized: Vec<_> = all.iter().filter(|(_, bytes)| bytes.len() > 1000).collect();
    std::fs::write(sized[0].0, sized[1].1).unwrap();
    check_all(&|| "moved".to_owned());
    std::fs::remove_file(sized[0].0).unwrap();
    let read = values.iter().filter(|(place, _)| vault.get(&run("r"), place).is_err()).count();
    assert!(read > 0, "a part is missing");
}

#[test]
fn runs_share_no_file_and_equal_content_of_a_run_is_kept_once() {
    let home = tempfile::tempdir().unwrap();
    let mut vault = on_disk(home.path());
    let bytes = noise(100_000, 1);
    vault.put(&run("r"), "1", &bytes).unwrap();
    let of_one = files(home.path());
    vault.put(&run("s"), "1", &bytes).unwrap();
    let of_two = files(home.path());
    assert_eq!(of_two.len() - 1, 2 * (of_one.len() - 1), "the mark of the key is there once");
    let contents: BTreeSet<_> = of_two.values().collect();
    assert_eq!(contents.len(), of_two.len(), "no two files are alike");
    vault.put(&run("r"), "2", &bytes).unwrap();
    assert_eq!(files(home.path()).len(), of_two.len() + 1, "an entry, and no part");
}

#[test]
fn a_value_of_10_megabytes_that_grows_costs_its_growth() {
    let home = tempfile::tempdir().unwrap();
    let mut vault = on_disk(home.path());
    let mut bytes = noise(10 << 20, 5);
    let size = || files(home.path()).values().map(|bytes| bytes.len()).sum::<usize>();
    vault.put(&run("r"), "0", &bytes).unwrap();
    let mut before = size();
    assert!(before < (10 << 20) * 104 / 100, "{before}");
    for turn in 1..=5 {
        bytes.extend(noise(1 << 10, 100 + turn));
        vault.put(&run("r"), &turn.to_string(), &bytes).unwrap();
        let now = size();
        assert!(now - before < 80 << 10, "turn {turn} cost {}", now - before);
        before = now;
    }
    assert!(vault.get(&run("r"), "5").unwrap() == bytes);
}

#[test]
fn neither_value_nor_run_nor_place_is_in_a_file() {
    let home = tempfile::tempdir().unwrap();
    let mut vault = on_disk(home.path());
    let secret = "canary-".repeat(3000);
    vault.put(&run("canary-run"), "canary/place", secret.as_bytes()).unwrap();
    for (path, bytes) in files(home.path()) {
        let has = |needle: &[u8]| bytes.windows(needle.len()).any(|part| part == needle);
        assert!(!has(b"canary") && !path.to_string_lossy().contains("canary"), "{}", path.display());
    }
    // The key is next to that of the log, and in no store.
    let key = home.path().join(format!("config/keys/{}.vault", vault.store.info().id));
    let text = std::fs::read_to_string(&key).unwrap();
    assert!(text.starts_with("dendrer-vault-key/1 "), "{text}");
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&key.metadata().unwrap().permissions()) & 0o777,
        0o600
    );
    assert_eq!(std::fs::read_dir(key.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_destroyed_value_takes_its_parts_and_leaves_those_of_others() {
    let home = tempfile::tempdir().unwrap();
    let mut vault = on_disk(home.path());
    let shared = noise(300_000, 1);
    let longer = [&shared[..], &noise(50_000, 2)].concat();
    vault.put(&run("r"), "1", &shared).unwrap();
    let before = files(home.path());
    vault.put(&run("r"), "2", &longer).unwrap();
    vault.destroy(&run("r"), "2").unwrap();
    assert_eq!(files(home.path()), before);
    assert_eq!(vault.get(&run("r"), "2").unwrap_err().code(), Code::E0311);
    assert_eq!(vault.destroy(&run("r"), "2").unwrap_err().code(), Code::E0311);
    assert!(vault.get(&run("r"), "1").unwrap() == shared);
    // The other way round: the longer one keeps what it shares.
    vault.put(&run("r"), "2", &longer).unwrap();
    vault.destroy(&run("r"), "1").unwrap();
    assert!(vault.get(&run("r"), "2").unwrap() == longer);
    vault.destroy(&run("r"), "2").unwrap();
    assert_eq!(files(home.path()).len(), 1, "the mark is left");
}

#[test]
fn a_destroyed_key_takes_everything_with_it() {
    let home = tempfile::tempdir().unwrap();
    let mut vault = on_disk(home.path());
    vault.put(&run("r"), "1", b"secret").unwrap();
    let copies = files(home.path());
    vault.destroy_key().unwrap();
    assert_eq!(files(home.path()).len(), 0);
    assert_eq!(vault.get(&run("r"), "1").unwrap_err().code(), Code::E0465);
    // Copies that come back are not read, and hide no second key.
    for (path, bytes) in &copies {
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(vault.get(&run("r"), "1").unwrap_err().code(), Code::E0465);
    assert_eq!(vault.put(&run("r"), "2", b"more").unwrap_err().code(), Code::E0465);
    vault.destroy_key().unwrap();
    vault.put(&run("r"), "2", b"more").unwrap();
    assert_eq!(vault.get(&run("r"), "2").unwrap(), b"more");
}

#[test]
fn a_vault_key_is_never_replaced_and_a_damaged_one_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let store = dendrer_testkit::store_id(1);
    let file = home.path().join("keys").join(format!("{store}.vault"));
    let of_user = UserTrust::at(home.path());
    let trusts: [&dyn Trust; 2] = [&MemoryTrust::new(), &of_user];
    for trust in trusts {
        assert_eq!(trust.vault_key(store).unwrap(), None);
        let [first, second] = [[1; 32], [2; 32]].map(VaultKey::from_bytes);
        trust.keep_vault_key(store, &first).unwrap();
        let error = trust.keep_vault_key(store, &second).unwrap_err();
        assert!(
            matches!(&error, TrustError::KeyNotWritten { source, .. } if source.kind() == ErrorKind::AlreadyExists),
            "{error}"
        );
        assert_eq!(trust.vault_key(store).unwrap(), Some(first));
        assert_eq!(trust.vault_key(dendrer_testkit::store_id(2)).unwrap(), None);
        trust.destroy_vault_key(dendrer_testkit::store_id(2)).unwrap();
    }
    std::fs::write(&file, "dendrer-vault-key/1 x\n").unwrap();
    assert_eq!(of_user.vault_key(store).unwrap_err().code(), Code::E0804);
    of_user.destroy_vault_key(store).unwrap();
    assert_eq!(of_user.vault_key(store).unwrap(), None);
    // Beside a key file that was named.
    let named = UserTrust::at(home.path()).with_key_file(Some(home.path().join("my.key")));
    named.keep_vault_key(store, &VaultKey::from_bytes([3; 32])).unwrap();
    assert!(home.path().join("my.key.vault").is_file());
}

#[test]
fn processes_that_begin_a_vault_at_once_have_one_key() {
    let home = tempfile::tempdir().unwrap();
    drop(on_disk(home.path()));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let home = home.path();
            scope.spawn(move || {
                let store = Embedded::open(&dir_of_store(home), Options::untagged()).unwrap();
                let trust = Arc::new(UserTrust::at(home.join("config")));
                let mut vault = Vault::open(&Shared::new(Box::new(store)), trust);
                vault.put(&run("r"), &number.to_string(), &noise(9000, number)).unwrap();
            });
        }
    });
    let store = Embedded::open(&dir_of_store(home.path()), Options::read()).unwrap();
    let vault =
        Vault::open(&Shared::new(Box::new(store)), Arc::new(UserTrust::at(home.path().join("config"))));
    for number in 0..4 {
        assert!(vault.get(&run("r"), &number.to_string()).unwrap() == noise(9000, number));
    }
}

const DIR: &str = "/work/.dendrer";

fn options(disk: &Faulty) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() }
}

/// Opens the vault of a disk that a crash left.
fn after(disk: &Faulty, trust: &MemoryTrust) -> Vault {
    let store = Embedded::open(Path::new(DIR), options(disk)).unwrap();
    Vault::open(&Shared::new(Box::new(store)), Arc::new(trust.clone()))
}

#[test]
fn a_put_that_was_stopped_anywhere_leaves_all_or_nothing() {
    let [old, new] = [noise(9_000, 1), [noise(9_000, 1), noise(30_000, 2)].concat()];
    let disk = Faulty::new();
    let trust = MemoryTrust::new();
    drop(Embedded::create(Path::new(DIR), dendrer_testkit::info(1), options(&disk)).unwrap());
    let mut vault = after(&disk, &trust);
    vault.put(&run("r"), "old", &old).unwrap();
    let begin = disk.moments();
    vault.put(&run("r"), "new", &new).unwrap();
    let end = disk.moments();
    drop(vault);
    assert!(end - begin > 20, "{} moments", end - begin);
    let mut whole = 0;
    for moment in begin..=end {
        for crash in [Crash::Process, Crash::Everything, Crash::Random(1), Crash::Random(2), Crash::Random(3)]
        {
            let image = disk.image(moment, crash);
            let mut vault = after(&image, &trust);
            assert!(vault.get(&run("r"), "old").unwrap() == old, "{moment} {crash:?}");
            match vault.get(&run("r"), "new") {
                Ok(found) => {
                    assert!(found == new, "{moment} {crash:?}");
                    whole += 1;
                }
                Err(error) => assert_eq!(error.code(), Code::E0311, "{moment} {crash:?}: {error}"),
            }
            if moment == end {
                assert!(vault.get(&run("r"), "new").is_ok(), "it was acknowledged: {crash:?}");
            }
            // It can be put again, and nothing is left over.
            vault.put(&run("r"), "new", &new).unwrap();
            assert!(vault.get(&run("r"), "new").unwrap() == new, "{moment} {crash:?}");
            assert_eq!(vault.sweep(false).unwrap(), 0, "{moment} {crash:?}");
        }
    }
    assert!(whole >= 5);
}

#[test]
fn a_destroy_that_was_stopped_anywhere_can_be_done_again() {
    let [kept, gone] = [noise(9_000, 1), [noise(9_000, 1), noise(200_000, 2)].concat()];
    let disk = Faulty::new();
    let trust = MemoryTrust::new();
    drop(Embedded::create(Path::new(DIR), dendrer_testkit::info(1), options(&disk)).unwrap());
    let mut vault = after(&disk, &trust);
    vault.put(&run("r"), "kept", &kept).unwrap();
    let files = disk.list(&Path::new(DIR).join("vault")).unwrap().len();
    vault.put(&run("r"), "gone", &gone).unwrap();
    let begin = disk.moments();
    vault.destroy(&run("r"), "gone").unwrap();
    let end = disk.moments();
    drop(vault);
    for moment in (begin..=end).step_by(3).chain([end]) {
        for crash in [Crash::Process, Crash::Everything, Crash::Random(moment as u64)] {
            let image = disk.image(moment, crash);
            let mut vault = after(&image, &trust);
            match vault.get(&run("r"), "gone") {
                Ok(found) => assert!(found == gone, "{moment} {crash:?}"),
                Err(error) => {
                    assert!(
                        [Code::E0311, Code::E0305].contains(&error.code()),
                        "{moment} {crash:?}: {error}"
                    );
                }
            }
            let again = vault.destroy(&run("r"), "gone");
            assert!(again.is_ok() || moment == end, "{moment} {crash:?}");
            vault.sweep(false).unwrap();
            assert!(vault.get(&run("r"), "kept").unwrap() == kept, "{moment} {crash:?}");
            let left = image.list(&Path::new(DIR).join("vault")).unwrap();
            let left = left.iter().filter(|name| !name.ends_with(".tmp")).count();
            assert_eq!(left, files, "{moment} {crash:?}");
        }
    }
}

#[test]
fn a_put_goes_on_after_any_call_failed() {
    let bytes = noise(20_000, 3);
    for call in 0.. {
        let disk = Faulty::new();
        let trust = MemoryTrust::new();
        drop(Embedded::create(Path::new(DIR), dendrer_testkit::info(1), options(&disk)).unwrap());
        let mut vault = after(&disk, &trust);
        disk.fail(call, DiskFault::Error(ErrorKind::Other), false);
        let put = vault.put(&run("r"), "p", &bytes);
        let was_reached = !disk.is_pending();
        disk.heal();
        match put {
            Ok(_) => assert!(vault.get(&run("r"), "p").unwrap() == bytes, "call {call}"),
            Err(_) => {
                let mut vault = after(&disk, &trust);
                vault.put(&run("r"), "p", &bytes).unwrap();
                assert!(vault.get(&run("r"), "p").unwrap() == bytes, "call {call}");
            }
        }
        if !was_reached {
            assert!(call > 20, "{call} calls");
            return;
        }
    }
}

#[test]
fn a_link_in_the_place_of_the_vault_is_not_written_through() {
    let home = tempfile::tempdir().unwrap();
    let mut vault = on_disk(home.path());
    let elsewhere = home.path().join("elsewhere");
    Real.create_dir(&elsewhere).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&elsewhere, dir_of_store(home.path()).join("vault")).unwrap();
    #[cfg(unix)]
    {
        assert!(vault.put(&run("r"), "p", b"secret").is_err());
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
    #[cfg(not(unix))]
    vault.put(&run("r"), "p", b"secret").unwrap();
}

#[test]
fn puts_and_destroys_of_several_handles_lose_nothing_of_each_other() {
    let home = tempfile::tempdir().unwrap();
    drop(on_disk(home.path()));
    let open = || {
        let store = Embedded::open(&dir_of_store(home.path()), Options::untagged()).unwrap();
        Vault::open(&Shared::new(Box::new(store)), Arc::new(UserTrust::at(home.path().join("config"))))
    };
    let bytes = noise(40_000, 9);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut vault = open();
            for _ in 0..12 {
                vault.put(&run("r"), "passing", &bytes).unwrap();
                vault.destroy(&run("r"), "passing").unwrap();
            }
        });
        scope.spawn(|| {
            let mut vault = open();
            for number in 0..12 {
                vault.put(&run("r"), &number.to_string(), &bytes).unwrap();
                vault.sweep(false).unwrap();
            }
        });
    });
    let vault = open();
    for number in 0..12 {
        assert!(vault.get(&run("r"), &number.to_string()).unwrap() == bytes, "{number}");
    }
    let report = check(&vault.store, &*vault.trust).unwrap().unwrap();
    assert_eq!((report.entries, report.damaged), (12, vec![]));
}
