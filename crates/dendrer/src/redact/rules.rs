//! The rules of a profile and of a pack.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use dendrer_object::marker::{KEY_DIGITS, TAG_DIGITS};
use dendrer_object::{Digest, Value};
use regex::Regex;
use ring::hmac;

use super::{judge, names, vendor};

dendrer_object::words! {
    /// A set of rules, by name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum RedactionProfile {
        /// The rules of dendrer.
        #[default]
        Default = "default",
        /// To the letter what the published package takes: `carl-core` 0.2.0 (witness-log paper 2.4).
        Carl1 = "carl/1",
        /// Nothing.
        None = "none",
    }
}

/// The version of the rules of [`RedactionProfile::Default`]. It rises with any change of what they take.
const VERSION: &str = "2";

/// How many characters a secret has whose tag cannot be found by guesses, at least.
const TAGGED_MIN: usize = 8;

/// How long a value is that is taken wherever it is, at least.
const KNOWN_MIN: usize = 8;

/// The rules that a pack adds: its member `redact`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackRules {
    /// Names of which every value is a secret.
    pub names: Vec<String>,
    /// Patterns of secrets, by kind.
    pub shapes: BTreeMap<String, String>,
    /// Patterns of what is never taken.
    pub keep: Vec<String>,
    /// Variables of the environment whose values are secrets.
    pub env: Vec<String>,
    /// Kinds that are not taken.
    pub off: Vec<String>,
}

/// The pattern of a kind.
type KindPattern = (Arc<str>, Regex);

/// Why a rule cannot be used, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(String);

impl PackRules {
    /// Reads the member `redact` of a pack.
    pub fn of_pack(pack: &Value) -> Result<PackRules, RuleError> {
        let Some(value) = pack.get("redact") else { return Ok(PackRules::default()) };
        let members = value.as_object().ok_or_else(|| RuleError("redact is an object".to_owned()))?;
        if let Some((name, _)) =
            members.iter().find(|(name, _)| !["names", "shapes", "keep", "env", "off"].contains(&&***name))
        {
            return Err(RuleError(format!("redact has names, shapes, keep, env and off, and no {name}")));
        }
        let list = |name: &str| -> Result<Vec<String>, RuleError> {
            let Some(value) = value.get(name) else { return Ok(Vec::new()) };
            let texts = value.as_array().map(|items| {
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
            });
            texts.flatten().ok_or_else(|| RuleError(format!("redact.{name} is a list of texts")))
        };
        let mut shapes = BTreeMap::new();
        if let Some(value) = value.get("shapes") {
            let members = value
                .as_object()
                .ok_or_else(|| RuleError("redact.shapes is an object of kind to pattern".to_owned()))?;
            for (kind, pattern) in members.iter() {
                let pattern = pattern
                    .as_str()
                    .ok_or_else(|| RuleError(format!("redact.shapes.{kind} is a pattern")))?;
                shapes.insert(kind.to_string(), pattern.to_owned());
            }
        }
        let rules = PackRules {
            names: list("names")?,
            shapes,
            keep: list("keep")?,
            env: list("env")?,
            off: list("off")?,
        };
        if let Some(kind) = rules.off.iter().find(|kind| !rules.shapes.contains_key(*kind) && !is_kind(kind))
        {
            return Err(RuleError(format!("redact.off names {kind:?}, which no rule has")));
        }
        rules.compile().map(|_| rules)
    }

    fn compile(&self) -> Result<(Vec<KindPattern>, Vec<Regex>), RuleError> {
        let regex = |pattern: &String| {
            Regex::new(pattern).map_err(|error| {
                RuleError(format!(
                    "{pattern:?} is no pattern: {}",
                    error.to_string().lines().last().unwrap_or_default()
                ))
            })
        };
        let mut shapes = Vec::new();
        for (kind, pattern) in &self.shapes {
            if kind.is_empty()
                || kind.len() > 64
                || !kind.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
            {
                return Err(RuleError(format!("{kind:?} is no kind: letters, digits, - and _")));
            }
            shapes.push((kind.as_str().into(), regex(pattern)?));
        }
        Ok((shapes, self.keep.iter().map(regex).collect::<Result<_, _>>()?))
    }
}

/// Name, version and digest of a set of rules, as a record has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesVersion {
    /// The profile.
    pub name: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// The digest of all rules, those of the pack included; values that are known to be secret are not part of it.
    pub digest: Digest,
}

/// Values that are known to be secret, and what finds them in each of their writings.
#[derive(Clone)]
pub(super) struct KnownValues {
    values: Vec<String>,
    pub(super) finder: AhoCorasick,
}

/// The rules that are applied.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) profile: RedactionProfile,
    pub(super) version: RulesVersion,
    /// Values that are known to be secret, in several writings; each group at least twice as large as the next.
    pub(super) known: Vec<KnownValues>,
    pub(super) shapes: Vec<KindPattern>,
    pub(super) keep: Vec<Regex>,
    /// Names of the pack, to be found in a text.
    pub(super) names: Option<AhoCorasick>,
    pub(super) own_names: Vec<String>,
    /// Kinds that are not taken.
    pub(super) off: Vec<Arc<str>>,
    pub(super) tags: Option<TagKey>,
    /// The value that records have where nothing was taken, once one was made.
    pub(super) of_nothing: OnceLock<Value>,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Rules {
    /// Makes one of a profile, with the rules of a pack and values that are known to be secret. With a key, markers have a keyed tag,
    /// so that equal secrets stay visibly equal.
    pub(super) fn new(
        profile: RedactionProfile,
        pack: &PackRules,
        known: &[String],
        tag_key: Option<[u8; 32]>,
    ) -> Result<Rules, RuleError> {
        let (shapes, keep) = pack.compile()?;
        let text = match profile {
            RedactionProfile::Default => vendor::text(),
            RedactionProfile::Carl1 => dendrer_chain::PATTERNS.map(|(_, pattern)| pattern).join("\n"),
            RedactionProfile::None => String::new(),
        };
        let own = format!("{:?}", (&pack.names, &pack.shapes, &pack.keep));
        let own = if pack.off.is_empty() { own } else { format!("{own}{:?}", pack.off) };
        let own = if *pack == PackRules::default() { String::new() } else { own };
        let digest = Digest::of_parts(&[
            b"dendrer/redaction/v1\n",
            profile.as_str().as_bytes(),
            b"\n",
            VERSION.as_bytes(),
            b"\n",
            text.as_bytes(),
            own.as_bytes(),
        ]);
        let version = RulesVersion { name: profile.as_str().into(), version: VERSION.into(), digest };
        let known: Vec<String> = known.iter().filter(|value| is_worth_knowing(value)).cloned().collect();
        let known = KnownValues::of(known).map_err(|error| RuleError(error.to_string()))?;
        Ok(Rules {
            profile,
            version,
            known: known.into_iter().collect(),
            shapes,
            keep,
            names: (!pack.names.is_empty())
                .then(|| finder(&pack.names, true))
                .transpose()
                .map_err(|error| RuleError(error.to_string()))?,
            own_names: pack.names.clone(),
            off: pack.off.iter().map(|kind| Arc::from(&**kind)).collect(),
            tags: tag_key.map(|key| TagKey::new(&key)),
            of_nothing: OnceLock::new(),
        })
    }

    /// As these, with more values that are known. Values that cannot be found are left out.
    pub(super) fn knowing(&self, values: &[String]) -> Rules {
        let mut known = self.known.clone();
        let mut values = values.to_vec();
        // Each value is put into a new finder as often as the number of values doubles.
        while known.last().is_some_and(|last| last.values.len() <= 2 * values.len()) {
            values.extend(known.pop().into_iter().flat_map(|last| last.values));
        }
        known.extend(KnownValues::of(values).ok().flatten());
        Rules { known, ..self.clone() }
    }

    /// The strength of a name; `None` if the value beside it is no secret.
    pub(super) fn strength(&self, name: &str) -> Option<names::Strength> {
        if self.is_off(vendor::NAMED) {
            return None;
        }
        self.own_strength(name).or_else(|| names::strength(name))
    }

    /// The strength of a name that the pack adds.
    pub(super) fn own_strength(&self, name: &str) -> Option<names::Strength> {
        let is_own = self.own_names.iter().any(|own| own.eq_ignore_ascii_case(name));
        is_own.then_some(names::Strength::Password)
    }

    /// Whether the pack switches a kind off.
    pub(super) fn is_off(&self, kind: &str) -> bool {
        self.off.iter().any(|off| **off == *kind)
    }

    /// The marker that replaces a secret in a text.
    pub(super) fn marker(&self, kind: &str, secret: &str) -> String {
        marker(kind, self.tag(secret))
    }

    /// The marker that replaces a secret in the name of a thing: with a tag at any length, so that two names stay two.
    pub(super) fn name_marker(&self, kind: &str, secret: &str) -> String {
        marker(kind, self.tag_of_name(secret))
    }

    /// The tag of a secret: equal for equal secrets under one key. None for what can be guessed: fewer than
    /// [`TAGGED_MIN`] characters, or digits alone.
    pub(super) fn tag(&self, secret: &str) -> Option<String> {
        let can_be_guessed =
            secret.chars().count() < TAGGED_MIN || secret.bytes().all(|c| c.is_ascii_digit());
        if can_be_guessed { None } else { self.tag_of_name(secret) }
    }

    /// As [`Rules::tag`], of any text.
    pub(super) fn tag_of_name(&self, secret: &str) -> Option<String> {
        self.tags.as_ref().map(|key| key.tag(secret))
    }
}

/// The key that makes tags, and its id.
#[derive(Clone)]
pub(super) struct TagKey {
    key: hmac::Key,
    pub(super) id: Arc<str>,
}

impl TagKey {
    fn new(secret: &[u8; 32]) -> TagKey {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        // No text has these bytes, so no tag is an id.
        let id = hex(hmac::sign(&key, &[0xff; TAG_DIGITS]).as_ref())[..TAG_DIGITS].into();
        TagKey { key, id }
    }

    fn tag(&self, secret: &str) -> String {
        let signed = hex(hmac::sign(&self.key, secret.as_bytes()).as_ref());
        format!("{}{}", &self.id[..KEY_DIGITS], &signed[..TAG_DIGITS - KEY_DIGITS])
    }
}

/// Kinds of rules that are no shapes of a vendor.
const KINDS: &[&str] = &[vendor::NAMED, "known", "jwt", "private-key", "url-password", "recovery-phrase"];

/// Whether a rule has this kind.
fn is_kind(kind: &str) -> bool {
    KINDS.contains(&kind) || vendor::kinds().any(|one| one == kind)
}

impl KnownValues {
    /// Makes what finds values; `None` without any.
    fn of(values: Vec<String>) -> Result<Option<KnownValues>, aho_corasick::BuildError> {
        if values.is_empty() {
            return Ok(None);
        }
        let all: Vec<String> = values.iter().flat_map(|value| writings(value)).collect();
        Ok(Some(KnownValues { finder: finder(&all, false)?, values }))
    }
}

fn finder(texts: &[String], any_case: bool) -> Result<AhoCorasick, aho_corasick::BuildError> {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest).ascii_case_insensitive(any_case).build(texts)
}

fn marker(kind: &str, tag: Option<String>) -> String {
    match tag {
        None => format!("<redacted:{kind}>"),
        Some(tag) => format!("<redacted:{kind}#{tag}>"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

dendrer_object::words! {
    /// Why a value of the environment is not taken, although the name of its variable is that of a secret.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum NotKnown {
        /// It has fewer than 8 characters.
        Short = "short",
        /// It is letters of one case alone, as a word of the language is.
        OneCase = "one_case",
        /// It is the name of a tool or a type in the pack.
        NameOfTool = "name_of_tool",
        /// It is a placeholder or a reference.
        Placeholder = "placeholder",
        /// It is the path of a file.
        Path = "path",
    }
}

impl NotKnown {
    /// Returns why a value is not taken wherever it is; `None` for one that is. `names` are those of the tools and types of a pack.
    pub fn why<'n>(value: &str, names: impl IntoIterator<Item = &'n str>) -> Option<NotKnown> {
        let is_word = value.chars().all(char::is_alphabetic)
            && (!value.chars().any(char::is_uppercase) || !value.chars().any(char::is_lowercase));
        match value {
            _ if value.chars().count() < KNOWN_MIN => Some(NotKnown::Short),
            _ if names.into_iter().any(|name| name == value) => Some(NotKnown::NameOfTool),
            _ if is_word => Some(NotKnown::OneCase),
            _ if value.starts_with(['/', '.', '~']) => Some(NotKnown::Path),
            _ if judge::is_placeholder(value) => Some(NotKnown::Placeholder),
            _ => None,
        }
    }
}

/// Whether a known value can be looked for without taking what is no secret.
fn is_worth_knowing(value: &str) -> bool {
    NotKnown::why(value, []).is_none()
}

/// A value as it is, in base64, percent-encoded, as JSON escapes it, and in hex.
fn writings(value: &str) -> Vec<String> {
    let percent: String = value
        .bytes()
        .map(|c| match c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.' | b'~') {
            true => char::from(c).to_string(),
            false => format!("%{c:02X}"),
        })
        .collect();
    let escaped = Value::from(value).to_string();
    let hex: String = value.bytes().map(|c| format!("{c:02x}")).collect();
    let mut all = vec![value.to_owned(), percent, escaped[1..escaped.len() - 1].to_owned(), hex];
    for encode in [STANDARD.encode(value), URL_SAFE.encode(value)] {
        all.push(encode.trim_end_matches('=').to_owned());
    }
    // In base64 of something longer, all but the ends of the value has one of three forms.
    for shift in 1..3 {
        let padded = [&vec![b' '; shift][..], value.as_bytes()].concat();
        let encoded = STANDARD.encode(&padded);
        let bare = encoded.trim_end_matches('=');
        let end = padded.len() / 3 * 4;
        if end > 4 + KNOWN_MIN {
            all.push(bare[4..end.min(bare.len())].to_owned());
        }
    }
    all.sort();
    all.dedup();
    all
}
