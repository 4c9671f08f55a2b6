//! Names by which the value beside them is a secret: `password`, `API_KEY`, `clientSecret`, and not `max_tokens`, `monkey`,
//! `primary_key` or `password_policy`.
//!
//! Reads names only. Values are judged in [`super::judge`].

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// How much a name reveals of the value beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    /// The value is a secret if it looks like one: `token`, `auth`.
    Weak,
    /// The value is a short code: `pin`, `otp`.
    Code,
    /// The value is a secret unless it is a word or a reference: `api_key`, `secret`.
    Strong,
    /// The value is a secret, also if it is a word: `password`.
    Password,
    /// The value is several words: `passphrase`, `mnemonic`.
    Phrase,
}

/// A set of words, written in one text.
type Words = LazyLock<BTreeSet<&'static str>>;

/// Words of a password, in several languages.
const PASSWORDS: &str = "password passwd passwort kennwort contrasena contraseña senha wachtwoord pgpassword mysqlpassword \
    userpass userpassword passwords passwds pass psk passe requirepass masterauth secretpass dbpassword dbpass dbpasswd rootpw userpw adminpw bindpw rootpass storepass keypass motdepasse pwd pw \
    passw passwrd пароль 密码 密碼 パスワード";

/// Words of a secret that is several words.
const PHRASES: &str = "passphrase passphrases mnemonic seedphrase";

/// Words of a short code.
const CODES: &str = "pin otp totp passcode";

/// Words that are enough by themselves.
const STRONG: &str = "secret secrets credential credentials apikey privatekey secretkey accesskey accesstoken authtoken \
    clientsecret refreshtoken apitoken bottoken";

/// Words of a value that is a secret if it looks like one.
const WEAK: &str = "token auth authorization bearer cookie cookies jwt sas salt cred creds sig dsn clave";

/// Words before `key` with which it is a secret.
const KEYS: &str = "api access secret private encryption signing master auth account shared license licence ssh deploy webhook \
    hmac consumer jwt rsa ecdsa aes subscription recovery unlock decryption django flask rails stripe openai anthropic azure aws \
    gcp google datadog dd sendgrid mailgun twilio github gitlab heroku algolia mapbox sentry openrouter groq mistral cohere \
    gemini huggingface pinecone tavily admin unseal preshared psk jwt";

/// Words before `key` with which it is one if it looks like one.
const WEAK_KEYS: &str = "service client app session functions function sas integration ingest write server live prod production \
    rest maps application data cookie root";

/// Words before `tokens` with which they are secrets and no count.
const TOKENS: &str = "access refresh auth api bearer session id oauth secret device push";

/// Words before `phrase` or `words` that name a recovery phrase.
const OF_PHRASE: &str = "seed recovery backup secret mnemonic wallet pass";

/// Words before `code` with which it opens something.
const OF_CODE: &str = "verification otp totp mfa 2fa twofactor onetime auth authentication security backup recovery login passcode \
    tan sms alarm door gate entry lock unlock safe access activation";

/// Words at the end with which a name is about a secret and does not have one.
const ABOUT: &str = "id ids name names count counts type types length len limit limits max min used usage total budget url uri \
    urls endpoint path paths file files filename dir hint policy policies field fields label prompt expires expiry expiration ttl at \
    version algorithm alg format provider required enabled disabled valid index size ring board strength rotation age duration \
    timeout error errors message reset in left remaining per cost price rate manager service store storage engine backend class \
    kind status state scope scopes mode method methods header ref reference arn vault source env var key_name validator changed \
    updated created date time page input form protected exists set present found missing attempts retries placeholder detector \
    scanner scanning detection redacted level plan mapping map list check checks test tests rule rules regex pattern requirements \
    hasher hashers handler helper util utils view screen component box btn button link text icon strategy chars charset grant \
    flow flows group groups title description section kinds manager managers cls md html py js ts css go rs java rb php txt json \
    yaml yml xml sh log pdf accessor lookup revoked reader writer parser lexer stream kind png svg toml tsx jsx lock pem crt pub fingerprint thumbprint iterations rounds cipher \
    tag tags sha sha256 model days hours encryption encoding";

/// Words at the front with which a name asks about a secret or counts.
const ASKS: &str = "is has use uses num number max min no show reset forgot forget change update require requires required total \
    count input output prompt completion cached reasoning remaining used estimated avg average public primary foreign sort partition \
    cache idempotency object s3 dict group row map lookup composite unique index next previous page continuation pagination sync \
    eos bos pad unk stop special enable disable with without needs can should new_line missing invalid expired routing storage \
    blob bucket shard thought hide toggle generate validate check verify hash encrypt decrypt parse get fetch create rotate revoke";

fn set(words: &'static str) -> BTreeSet<&'static str> {
    words.split_whitespace().collect()
}

static IS_PASSWORD: Words = LazyLock::new(|| set(PASSWORDS));
static IS_PHRASE: Words = LazyLock::new(|| set(PHRASES));
static IS_CODE: Words = LazyLock::new(|| set(CODES));
static IS_STRONG: Words = LazyLock::new(|| set(STRONG));
static IS_WEAK: Words = LazyLock::new(|| set(WEAK));
static BEFORE_KEY: Words = LazyLock::new(|| set(KEYS));
static BEFORE_WEAK_KEY: Words = LazyLock::new(|| set(WEAK_KEYS));
static BEFORE_TOKENS: Words = LazyLock::new(|| set(TOKENS));
static BEFORE_PHRASE: Words = LazyLock::new(|| set(OF_PHRASE));
static BEFORE_CODE: Words = LazyLock::new(|| set(OF_CODE));
static IS_ABOUT: Words = LazyLock::new(|| set(ABOUT));
static IS_ASKING: Words = LazyLock::new(|| set(ASKS));

/// Splits a name into words: at `_`, `-`, `.`, blanks and changes of case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = name.chars().collect();
    for (at, &c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            continue;
        }
        let before = at.checked_sub(1).map(|before| chars[before]);
        let is_hump = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || (before.is_some_and(char::is_uppercase)
                    && chars.get(at + 1).is_some_and(|next| next.is_lowercase())));
        if is_hump && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        word.extend(c.to_lowercase());
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The parts of which each name of a secret contains one. Most names have none, and are not split.
static SAYING: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let lists = [PASSWORDS, PHRASES, CODES, STRONG, WEAK];
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .ascii_case_insensitive(true)
        .build(words.chain(["key", "token", "phrase", "words", "code", "identified", "pat", "signature"]))
        .expect("some short texts")
});

/// Ends of one word that was written together, like `dbpassword` or `authtoken`.
const JOINED: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "apikey",
    "passphrase",
    "authtoken",
    "accesstoken",
    "apitoken",
    "accesskey",
];

/// The strength of a name; `None` if the value beside it is no secret.
pub(super) fn strength(name: &str) -> Option<Strength> {
    if name.len() > 100 || (name.is_ascii() && !SAYING.is_match(name)) {
        return None;
    }
    // A text has few names, and each of them often.
    let step = |hash: u64, c: u8| (hash ^ u64::from(c)).wrapping_mul(0x0100_0000_01b3);
    let place = name.bytes().fold(0xcbf2_9ce4_8422_2325, step) as usize % SEEN_MAX;
    SEEN.with_borrow_mut(|seen| match &seen[place] {
        (known, found) if **known == *name => *found,
        _ => {
            let found = strength_of(&words(name));
            seen[place] = (name.into(), found);
            found
        }
    })
}

/// How many names a thread remembers, each at the place of its hash.
const SEEN_MAX: usize = 1_024;

thread_local! {
    static SEEN: RefCell<Vec<(Box<str>, Option<Strength>)>> =
        RefCell::new(vec![(Box::default(), None); SEEN_MAX]);
}

/// The strength of a name that no list explains.
fn of_its_own(words: &[&str]) -> Option<Strength> {
    let (first, last) = (*words.first()?, *words.last()?);
    // Of a secret's own kinds, these have `id` in their name and are secrets all the same.
    if words == ["secret", "id"] {
        return Some(Strength::Weak);
    }
    // A personal access token; else a pattern.
    const OF_TOKEN: [&str; 10] =
        ["github", "gitlab", "azure", "ado", "devops", "git", "gh", "access", "personal", "token"];
    if last == "pat" && words.iter().any(|word| OF_TOKEN.contains(word)) {
        return Some(Strength::Weak);
    }
    // Alone it names a mountain pass and a ticket as well.
    if words == ["pass"] {
        return Some(Strength::Strong);
    }
    if words == ["identified", "by"] {
        return Some(Strength::Password);
    }
    // A token that resets a password opens the account.
    if last == "token" && first == "reset" {
        return Some(Strength::Strong);
    }
    // A signed address opens what it names.
    if last == "signature" && words.iter().any(|word| matches!(*word, "amz" | "goog")) {
        return Some(Strength::Strong);
    }
    None
}

fn strength_of(words: &[String]) -> Option<Strength> {
    let words: Vec<&str> =
        words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit())).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let (first, last) = (*words.first()?, *words.last()?);
    if let Some(found) = of_its_own(&words) {
        return Some(found);
    }
    // A trial token of a page is public, and OAuth is a protocol.
    if words.contains(&"trial") || words == ["o", "auth"] {
        return None;
    }
    if IS_ABOUT.contains(last) || (IS_ASKING.contains(first) && words.len() > 1) {
        return None;
    }
    let before = |at: usize| at.checked_sub(1).map_or("", |before| words[before]);
    let has = |set: &Words| words.iter().any(|word| set.contains(word));
    let is_after = |word: &[&str], set: &Words| {
        (1..words.len()).any(|at| word.contains(&words[at]) && set.contains(before(at)))
    };
    if has(&IS_PHRASE) || is_after(&["phrase", "words"], &BEFORE_PHRASE) {
        return Some(Strength::Phrase);
    }
    if has(&IS_PASSWORD) {
        return Some(Strength::Password);
    }
    let is_code = is_after(&["code", "codes"], &BEFORE_CODE)
        || words.windows(3).any(|three| matches!(three, ["one", "time", "code"] | ["two", "factor", "code"]));
    if has(&IS_CODE) || is_code {
        return Some(Strength::Code);
    }
    let is_joined = JOINED.iter().any(|end| last.ends_with(end));
    if has(&IS_STRONG) || is_after(&["key", "keys"], &BEFORE_KEY) {
        // `secret` alone names many a thing; the secret of something is one.
        return Some(Strength::Strong);
    }
    if is_after(&["token"], &BEFORE_TOKENS) || (last == "token" && before(words.len() - 1) == "bot") {
        return Some(Strength::Strong);
    }
    if words.len() == 1 && is_joined {
        let is_password = last.ends_with("password") || last.ends_with("passwd");
        return Some(if is_password { Strength::Password } else { Strength::Strong });
    }
    let is_weak = has(&IS_WEAK)
        || is_after(&["tokens"], &BEFORE_TOKENS)
        || is_after(&["key", "keys"], &BEFORE_WEAK_KEY);
    is_weak.then_some(Strength::Weak)
}

/// Whether the value of a variable of the environment is a secret, by its name.
pub fn is_secret_name(name: &str) -> bool {
    strength(name).is_some()
}

/// Parts of names by which a place in a text is found, in lower case.
pub(super) const HINTS: &[&str] = &[
    "passw",
    "pwd",
    "passphrase",
    "passcode",
    "kennwort",
    "contrase",
    "senha",
    "wachtwoord",
    "motdepasse",
    "mot de passe",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "secret",
    "credential",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "key",
    "token",
    "auth",
    "bearer",
    "pass",
    "pin",
    "cookie",
    "jwt",
    "sas",
    "sig",
    "salt",
    "cred",
    "session",
    "mnemonic",
    "otp",
    "pat",
    "dsn",
    "phrase",
    "words",
    "code",
    "psk",
    "requirepass",
    "masterauth",
    "identified by",
    "clave",
    "pw",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_of_secrets_are_told_from_names_about_them() {
        for name in [
            "password",
            "DB_PASSWORD",
            "db.password",
            "clientSecret",
            "client_secret",
            "API_KEY",
            "apiKey",
            "x-api-key",
            "OPENAI_API_KEY",
            "access_token",
            "refreshToken",
            "aws_secret_access_key",
            "PGPASSWORD",
            "private-key",
            "Authorization",
            "auth_token",
            "token",
            "smtp_pass",
            "GITHUB_TOKEN",
            "signing_key",
            "dbpassword",
            "api_tokens",
            "secret",
        ] {
            assert!(strength(name).is_some(), "{name}");
        }
        for name in [
            "tokens_used",
            "max_tokens",
            "monkey",
            "keyboard",
            "primary_key",
            "public_key",
            "key",
            "keys",
            "token_count",
            "input_tokens",
            "password_policy",
            "password_length",
            "secret_name",
            "access_key_id",
            "token_type",
            "author",
            "authority",
            "passenger",
            "compass",
            "session_count",
            "keyword",
            "turkey",
            "tokenizer",
            "next_token",
            "completion_tokens",
            "cache_key",
            "is_secret",
            "api_key_id",
            "hockey",
            "passes",
            "bypass",
            "desktop",
            "pinned",
            "total_tokens",
            "password_reset_url",
        ] {
            assert_eq!(strength(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_that_is_not_split_says_nothing(
            parts in proptest::collection::vec((0..400usize, 0..4usize, 0..6usize), 1..4))
        {
            let lists: Vec<&str> =
                [PASSWORDS, PHRASES, CODES, STRONG, WEAK, KEYS, WEAK_KEYS, TOKENS, OF_PHRASE, OF_CODE, ABOUT, ASKS].iter().flat_map(|list| list.split_whitespace()).filter(|word| word.is_ascii()).chain(["key", "keys", "token", "tokens", "bot", "phrase", "words", "code", "of", "x7"]).collect();
            let mut name = String::new();
            for (word, case, between) in parts {
                let word = lists[word % lists.len()];
                let word = match case {
                    0 => word.to_ascii_uppercase(),
                    1 => word[..1].to_ascii_uppercase() + &word[1..],
                    2 => format!("{word}2"),
                    _ => word.to_owned(),
                };
                name += &word;
                name += ["_", "-", ".", " ", "", ""][between];
            }
            prop_assert_eq!(strength(&name), strength_of(&words(&name)));
        }
    }
}
