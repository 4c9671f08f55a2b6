//! Command lines and lists of arguments of programs that take a secret in an option or a place of its own.
//!
//! Options whose name is that of a secret (`--password X`) are read as names are; here are those that only their program explains:
//! `mysql -pX`, `curl -u user:X`, `openssl -passin pass:X`.

use std::sync::LazyLock;

use super::judge;
use super::names::Strength;
use super::part::has_marker;
use super::prefilter;
use super::rules::Rules;
use super::vendor::{SecretSpan, named_span};

/// How an option has its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    /// In the next argument, or after `=`.
    Next,
    /// Right after the option: `-pX`.
    Glued,
    /// Either.
    Both,
    /// Like `Both`, after this sign: `-u user:X`.
    After(u8),
    /// Like `Next`, after `pass:`.
    Pass,
}

/// The place of a secret that no option names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    None,
    /// After this argument and so many others.
    Behind(&'static str, usize),
    /// The last one, if it is drawn by chance.
    LastOfChance,
    /// The last one, if this argument is there.
    Last(&'static str),
    /// The argument of this number, from 0, options not counted.
    At(usize),
    /// The last one, if the options have a `b`.
    LastOfBatch,
    /// `user/X@database`.
    UserSlash,
    /// `domain/user:X@host`.
    UserColon,
    /// The one after `\\\\server\\share`.
    AfterShare,
    /// The text that is printed for a program that reads a secret.
    Piped,
}

struct Program {
    names: &'static str,
    /// An argument without which the options mean something else.
    needs: &'static str,
    options: &'static [(&'static str, Take)],
    place: Place,
}

const fn program(
    names: &'static str,
    needs: &'static str,
    options: &'static [(&'static str, Take)],
    place: Place,
) -> Program {
    Program { names, needs, options, place }
}

use Take::{After, Both, Glued, Next, Pass};

const PROGRAMS: &[Program] = &[
    program(
        "curl",
        "",
        &[
            ("-u", After(b':')),
            ("--user", After(b':')),
            ("-U", After(b':')),
            ("--proxy-user", After(b':')),
            ("--oauth2-bearer", Next),
            ("--pass", Next),
            ("--proxy-pass", Next),
        ],
        Place::None,
    ),
    program("http https xh xhs", "", &[("-a", After(b':')), ("--auth", After(b':'))], Place::None),
    program(
        "mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlsh mysqlpump mariadb mariadb-dump mariadb-admin mycli \
        mysqlslap mysqlbinlog innobackupex xtrabackup",
        "",
        &[("-p", Glued)],
        Place::None,
    ),
    program("sshpass", "", &[("-p", Both)], Place::None),
    program(
        "redis-cli valkey-cli keydb-cli redis-benchmark",
        "",
        &[("-a", Both), ("--pass", Next)],
        Place::None,
    ),
    program(
        "docker podman nerdctl helm oras crane buildah az oc argocd ibmcloud cf tanzu ctr",
        "login",
        &[("-p", Next)],
        Place::None,
    ),
    program(
        "skopeo",
        "",
        &[
            ("--creds", After(b':')),
            ("--src-creds", After(b':')),
            ("--dest-creds", After(b':')),
            ("-p", Next),
        ],
        Place::None,
    ),
    program(
        "openssl",
        "",
        &[
            ("-passin", Pass),
            ("-passout", Pass),
            ("-pass", Pass),
            ("-password", Pass),
            ("-k", Next),
            ("-K", Next),
        ],
        Place::None,
    ),
    program(
        "ldapsearch ldapmodify ldapadd ldapdelete ldappasswd ldapwhoami ldapcompare ldapmodrdn ldapexop",
        "",
        &[("-w", Both)],
        Place::None,
    ),
    program("ldappasswd", "", &[("-s", Next), ("-a", Next)], Place::None),
    program(
        "smbclient rpcclient smbget winexe pth-winexe wmic smbcacls smbtree",
        "",
        &[("-U", After(b'%')), ("--user", After(b'%'))],
        Place::None,
    ),
    program(
        "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles",
        "",
        &[("-p", Both)],
        Place::None,
    ),
    program("sqlcmd bcp osql isql tsql", "", &[("-P", Both)], Place::None),
    program("sqlplus sqlldr impdp expdp sqlcl", "", &[], Place::UserSlash),
    program("xfreerdp xfreerdp3 wlfreerdp", "", &[("/p:", Glued)], Place::None),
    program(
        "rdesktop vncviewer evil-winrm crackmapexec netexec nxc hydra medusa twine cqlsh ncftpput ncftpget",
        "",
        &[("-p", Next)],
        Place::None,
    ),
    program("zip unzip", "", &[("-P", Both)], Place::None),
    program("7z 7za 7zz 7zr rar unrar", "", &[("-p", Glued), ("-hp", Glued)], Place::None),
    program("htpasswd", "", &[], Place::LastOfBatch),
    program(
        "keytool jarsigner apksigner",
        "",
        &[
            ("-storepass", Next),
            ("-keypass", Next),
            ("-srcstorepass", Next),
            ("-deststorepass", Next),
            ("-srckeypass", Next),
            ("-destkeypass", Next),
            ("-new", Next),
            ("--ks-pass", Pass),
            ("--key-pass", Pass),
        ],
        Place::None,
    ),
    program("security", "", &[("-w", Next), ("-p", Next), ("-P", Next), ("-k", Next)], Place::None),
    program("lftp", "", &[("-u", After(b',')), ("--user", After(b','))], Place::None),
    program("ssh-keygen", "", &[("-N", Next), ("-P", Next)], Place::None),
    program(
        "snmpwalk snmpget snmpset snmpbulkwalk snmptrap",
        "",
        &[("-c", Next), ("-A", Next), ("-X", Next)],
        Place::None,
    ),
    program("ipmitool mosquitto_pub mosquitto_sub", "", &[("-P", Both)], Place::None),
    program("kubectl oc k3s", "secret", &[("--from-literal", After(b'='))], Place::None),
    program("etcdctl", "", &[("--user", After(b':'))], Place::None),
    program("rabbitmqctl", "", &[], Place::Behind("add_user", 1)),
    program("rabbitmqctl", "", &[], Place::Behind("change_password", 1)),
    program("rabbitmqctl", "", &[], Place::Behind("authenticate_user", 1)),
    program(
        "nmcli",
        "",
        &[("password", Next), ("wifi-sec.psk", Next), ("802-11-wireless-security.psk", Next)],
        Place::None,
    ),
    program("wpa_passphrase", "", &[], Place::At(1)),
    program("db2", "", &[("using", Next)], Place::None),
    program("vault bao", "", &[], Place::Behind("login", 0)),
    program("rclone", "", &[], Place::Behind("obscure", 0)),
    program("grafana-cli grafana", "", &[], Place::Behind("reset-admin-password", 0)),
    program("useradd usermod", "", &[("-p", Next)], Place::None),
    program("snowsql", "", &[("-p", Next)], Place::None),
    program(
        "psexec.py secretsdump.py wmiexec.py smbexec.py atexec.py smbclient.py mssqlclient.py getuserspns.py",
        "",
        &[],
        Place::UserColon,
    ),
    program("convertto-securestring", "", &[("-String", Next)], Place::At(0)),
    program("cargo", "", &[], Place::Last("login")),
    program("login", "", &[("-p", Next), ("-t", Next)], Place::LastOfChance),
    program("net", "user", &[], Place::At(2)),
    program("net", "use", &[], Place::AfterShare),
    program("gh", "secret", &[("--body", Next), ("-b", Next)], Place::None),
    program("az", "keyvault", &[("--value", Next)], Place::None),
    program("nuget dotnet", "push", &[("-k", Next)], Place::None),
    program("wget", "", &[("--http-passwd", Next)], Place::None),
    program("echo printf", "", &[], Place::Piped),
];

struct Table {
    /// The last two letters of names, a bit each: of five bits of the one, those of the other.
    ends: [u32; 32],
    /// The lengths of names, a bit each, by the first letter.
    lengths: [u32; 32],
    /// The rows of [`PROGRAMS`] by name.
    names: Vec<&'static str>,
    programs: Vec<Vec<&'static Program>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut names: Vec<&str> = PROGRAMS.iter().flat_map(|program| program.names.split_whitespace()).collect();
    names.sort_unstable();
    names.dedup();
    let (mut ends, mut lengths) = ([0; 32], [0; 32]);
    for name in &names {
        let bytes = name.as_bytes();
        ends[usize::from(bytes[bytes.len() - 1] & 31)] |= 1 << (bytes[bytes.len() - 2] & 31);
        lengths[usize::from(bytes[0] & 31)] |= 1 << bytes.len();
    }
    let of = |name: &&str| {
        let programs =
            PROGRAMS.iter().filter(|program| program.names.split_whitespace().any(|one| one == *name));
        programs.collect()
    };
    Table { ends, lengths, programs: names.iter().map(of).collect(), names }
});

/// Whether a text may have the command of a program, also where its frame is right before the name.
pub(super) fn is_in(text: &str) -> bool {
    blanks(text.as_bytes()).any(|at| {
        let word = &text[word_before(text.as_bytes(), at)..at];
        (2..=word.len().min(NAME_MAX)).any(|length| row(&word[word.len() - length..]).is_some())
    })
}

/// The names of programs that are words of their own, with a blank after them: the row of each, and its blank.
fn hits(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let bytes = text.as_bytes();
    blanks(bytes).filter_map(move |at| {
        let start = word_before(bytes, at);
        let is_own = start == 0 || bytes[start - 1] != b'@';
        let row = (is_own && at - start <= NAME_MAX).then(|| row(&text[start..at]))?;
        row.map(|row| (row, at))
    })
}

/// The blanks before which the last two letters are those of a name.
fn blanks(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let ends = &TABLE.ends;
    let is_end = move |at: &usize| {
        let Some([last_but_one, last]) = at.checked_sub(2).and_then(|from| bytes[from..].first_chunk())
        else {
            return false;
        };
        prefilter::is_off() || ends[usize::from(last & 31)] & 1 << (last_but_one & 31) != 0
    };
    memchr::memchr_iter(b' ', bytes).filter(is_end)
}

/// The begin of the word before a blank, or a place in it if it is longer than names are.
fn word_before(bytes: &[u8], blank: usize) -> usize {
    let is_part = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    blank - bytes[..blank].iter().rev().take(NAME_MAX + 1).take_while(|c| is_part(c)).count()
}

/// How long the name of a program is, at most.
const NAME_MAX: usize = 24;

/// The row of a name without its folder, in letters of any case.
fn row(base: &str) -> Option<usize> {
    let first = *base.as_bytes().first()?;
    if base.len() > NAME_MAX {
        return None;
    }
    let is_one = TABLE.lengths[usize::from(first & 31)] & 1 << base.len() != 0;
    if !is_one && !prefilter::is_off() {
        return None;
    }
    let small = base.bytes().map(|c| c.to_ascii_lowercase());
    TABLE.names.binary_search_by(|name| name.bytes().cmp(small.clone())).ok()
}

fn of_name(name: &str) -> &'static [&'static Program] {
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let base = base.strip_suffix(".exe").unwrap_or(base);
    row(base).map_or(&[], |row| &TABLE.programs[row])
}

/// An argument of a command line: its bytes in the text, with quotes.
#[derive(Debug, Clone, Copy)]
struct Argument {
    start: usize,
    end: usize,
}

/// Finds the secrets in command lines.
pub(super) fn find(text: &str, found: &mut Vec<SecretSpan>) {
    let mut upto = 0;
    for (row, blank) in hits(text) {
        let mut name = TABLE.names[row];
        if blank < upto + name.len() {
            continue;
        }
        let (arguments, end) = arguments(text, blank + 1);
        upto = end;
        let mut from = 0;
        for at in 0..=arguments.len() {
            // Another program in the words before: `use curl with mysql -pX`, `docker exec db mysql -pX`.
            let word = arguments.get(at).map(|one| &text[one.start..one.end]);
            let is_program = word.is_some_and(|word| TABLE.names.binary_search(&word).is_ok());
            if at < arguments.len() && !is_program {
                continue;
            }
            let own = &arguments[from..at];
            let texts: Vec<&str> = own.iter().map(|one| unquoted(text, *one).0).collect();
            for program in of_name(name) {
                for (place, begin, close) in secrets(program, &texts, &text[end.min(text.len())..]) {
                    let offset = unquoted(text, own[place]).1;
                    found.push(named_span(offset + begin, offset + close));
                }
            }
            (name, from) = (word.unwrap_or_default(), at + 1);
        }
    }
}

/// Finds the secrets in a list of arguments, as item, first byte and end.
pub(super) fn in_list(items: &[&str], rules: &Rules) -> Vec<(usize, usize, usize)> {
    let _ = rules;
    let mut found = Vec::new();
    let is_program = |item: &&str| {
        let base = item.rsplit(['/', '\\']).next().unwrap_or(item);
        let is_exe = base.len() > 4 && base.as_bytes()[base.len() - 4..].eq_ignore_ascii_case(b".exe");
        item.len() < 60 && row(if is_exe { &base[..base.len() - 4] } else { base }).is_some()
    };
    let Some(first) = items.iter().take(20).position(is_program) else { return found };
    for program in of_name(items[first]) {
        if program.place == Place::Piped {
            continue;
        }
        let more = secrets(program, &items[first + 1..], "");
        found.extend(more.into_iter().map(|(place, start, end)| (first + 1 + place, start, end)));
    }
    found
}

/// The arguments of a command that begins here, and its end.
fn arguments(text: &str, from: usize) -> (Vec<Argument>, usize) {
    let bytes = text.as_bytes();
    let mut arguments = Vec::new();
    let mut at = from;
    loop {
        while at < bytes.len() && (matches!(bytes[at], b' ' | b'\t') || is_continued(bytes, at)) {
            at += 1 + usize::from(bytes[at] == b'\\');
        }
        let start = at;
        let mut quote = 0u8;
        while at < bytes.len() {
            match bytes[at] {
                b'\n' => break,
                c if quote != 0 => quote = if c == quote { 0 } else { quote },
                c @ (b'"' | b'\'') => quote = c,
                b' ' | b'\t' | b'|' | b';' | b'`' => break,
                b')' if !text[start..at].contains('(') => break,
                b'&' if bytes.get(at + 1) == Some(&b'&') => break,
                b'\\' if bytes.get(at + 1) == Some(&b'\n') => break,
                _ => {}
            }
            at += 1;
        }
        if at > start {
            // A quote that nothing closes is that of the text around.
            let open = if quote != 0 {
                text[start..at].rfind(char::from(quote)).map_or(at, |open| start + open)
            } else {
                at
            };
            if quote != 0 && open > start {
                arguments.push(Argument { start, end: open });
                return (arguments, at);
            }
            arguments.push(Argument { start, end: at });
        }
        let goes_on = at < bytes.len() && (matches!(bytes[at], b' ' | b'\t') || is_continued(bytes, at));
        if !goes_on || arguments.len() >= 400 {
            return (arguments, at);
        }
    }
}

fn is_continued(bytes: &[u8], at: usize) -> bool {
    bytes[at] == b'\\' && bytes.get(at + 1) == Some(&b'\n')
}

/// An argument without its quotes, and where it begins.
fn unquoted(text: &str, one: Argument) -> (&str, usize) {
    let raw = &text[one.start..one.end];
    for quote in ['"', '\''] {
        if let Some(inner) = raw.strip_prefix(quote) {
            return (inner.strip_suffix(quote).unwrap_or(inner), one.start + 1);
        }
    }
    (raw, one.start)
}

/// The secrets in the arguments of a program, as argument, first byte and end.
fn secrets(program: &Program, arguments: &[&str], after: &str) -> Vec<(usize, usize, usize)> {
    let mut found = Vec::new();
    if !program.needs.is_empty() && !arguments.contains(&program.needs) {
        return found;
    }
    for (place, text) in arguments.iter().enumerate() {
        for (option, take) in program.options {
            let Some(rest) = text.strip_prefix(option) else { continue };
            let next = arguments.get(place + 1).filter(|_| rest.is_empty());
            let is_short = option.len() == 2;
            let glued = (!rest.is_empty() && (is_short || option.ends_with(':') || *take == Glued))
                .then_some((place, option.len(), *text));
            let glued = glued.or_else(|| rest.starts_with('=').then_some((place, option.len() + 1, *text)));
            let value = match take {
                Next | Pass => {
                    next.map(|next| (place + 1, 0, *next)).or(glued.filter(|_| rest.starts_with('=')))
                }
                Glued => glued,
                Both | After(_) => next.map(|next| (place + 1, 0, *next)).or(glued),
            };
            let Some((place, from, text)) = value else { continue };
            found.extend(
                of_option(*take, &text[from..]).map(|(start, end)| (place, from + start, from + end)),
            );
        }
    }
    found.extend(in_place(program.place, arguments, after));
    found
}

/// The secret in the value of an option.
fn of_option(take: Take, value: &str) -> Option<(usize, usize)> {
    let (lead, tail) = quotes(value);
    let inner = &value[lead..value.len() - tail];
    let from = lead
        + match take {
            After(sign) => inner.find(char::from(sign))? + 1,
            Pass => inner.strip_prefix("pass:").map(|_| 5)?,
            Next | Glued | Both => 0,
        };
    let value = &value[from..value.len() - tail];
    is_argument(value).then_some((from, from + value.len()))
}

/// The quotes at both ends of a value: `-p'X'`.
fn quotes(value: &str) -> (usize, usize) {
    let is_quoted = value.len() > 1 && value.starts_with(['"', '\'']) && value.ends_with(['"', '\'']);
    if is_quoted { (1, 1) } else { (0, 0) }
}

/// Whether an argument may be a secret: no option, variable, path or place of an example.
fn is_argument(value: &str) -> bool {
    const NO_SECRET: [&str; 6] = ["public", "private", "login", "user:pass", "-", "stdin"];
    value.len() >= 3
        && !value.starts_with(['-', '$', '<', '>', '@', '{', '%', '/'])
        && !has_marker(value)
        && !judge::is_placeholder(value)
        && !judge::is_path(value)
        && !NO_SECRET.contains(&value)
}

fn in_place(place: Place, arguments: &[&str], after: &str) -> Option<(usize, usize, usize)> {
    let plain = || arguments.iter().enumerate().filter(|(_, text)| !text.starts_with('-'));
    let whole = |place: usize| {
        let text = arguments.get(place).filter(|text| is_argument(text))?;
        Some((place, 0, text.len()))
    };
    match place {
        Place::None => None,
        Place::Behind(word, count) => {
            let at = arguments.iter().position(|text| *text == word)?;
            let text = arguments.get(at + 1 + count).filter(|text| !text.contains('='))?;
            (text.len() >= 6).then(|| whole(at + 1 + count)).flatten()
        }
        Place::LastOfChance => {
            let (last, text) = plain().last()?;
            let is_value = last.checked_sub(1).is_some_and(|before| arguments[before].starts_with("--"));
            let is_drawn = text.len() >= 16 && judge::is_mixed(text) && !text.contains(['/', ':', '.', '@']);
            (is_drawn && !is_value).then(|| whole(last)).flatten()
        }
        Place::Last(word) => {
            let from = arguments.iter().position(|text| *text == word)?;
            let (last, text) = plain().last().filter(|(last, _)| *last > from)?;
            (text.len() >= 12).then(|| whole(last)).flatten()
        }
        Place::AfterShare => {
            let (share, _) = plain().find(|(_, text)| text.starts_with("\\\\"))?;
            let value = arguments.get(share + 1).filter(|text| !text.starts_with('/') && **text != "*")?;
            (value.len() >= 3).then(|| whole(share + 1)).flatten()
        }
        Place::At(count) => plain().nth(count).and_then(|(place, _)| whole(place)),
        Place::LastOfBatch => {
            let is_batch = arguments
                .iter()
                .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains('b'));
            let (last, _) = plain().last().filter(|_| is_batch && plain().count() >= 2)?;
            whole(last)
        }
        Place::UserSlash => plain().find_map(|(place, text)| {
            let (user, rest) = text.split_once('/')?;
            let end = rest.find('@').unwrap_or(rest.len());
            let is_user = !user.is_empty()
                && user.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$' | b'#'));
            let from = user.len() + 1;
            (is_user && rest.contains('@') && is_argument(&rest[..end])).then_some((place, from, from + end))
        }),
        Place::UserColon => plain().find_map(|(place, text)| {
            let at = text.rfind('@')?;
            let from = text[..at].find(':')? + 1;
            is_argument(&text[from..at]).then_some((place, from, at))
        }),
        Place::Piped => piped(arguments, after),
    }
}

/// Ends of a pipe that read a secret from what comes before.
const READERS: &[&str] = &[
    "--password-stdin",
    "sudo -S",
    "--stdin",
    "chpasswd",
    "--passphrase-fd 0",
    "--with-token",
    "cryptsetup",
    "-passin stdin",
    "--token-stdin",
    "secret create",
    "secret set",
    "kinit",
    "smbpasswd",
];

fn piped(arguments: &[&str], after: &str) -> Option<(usize, usize, usize)> {
    let line = &after[..after.find('\n').unwrap_or(after.len()).min(200)];
    let reads = line.starts_with('|') && READERS.iter().any(|one| line.contains(one));
    let (place, text) =
        arguments.iter().enumerate().rfind(|(_, text)| !text.starts_with('-')).filter(|_| reads)?;
    let from = if line.contains("chpasswd") { text.find(':').map_or(0, |sign| sign + 1) } else { 0 };
    let end = text.trim_end_matches("\\n").len();
    (from < end && is_argument(&text[from..end])).then_some((place, from, end))
}

/// The strength that an option of a list has by its name.
pub(super) fn option_strength(option: &str, rules: &Rules) -> Option<Strength> {
    let is_option = option.starts_with('-') && !option.contains(['=', ' ']);
    is_option.then(|| rules.strength(option.trim_start_matches('-'))).flatten()
}
