//! Secrets that have a shape of their own: what vendors document of their keys and tokens.
//!
//! Each shape is a prefix and how many characters of which kind follow. The lengths are lower bounds that a token which was cut
//! or mistyped still reaches: such a token is a leak as well. The ids of the first shapes, and the patterns that say more than a
//! prefix does, are those of the crate `nosecrets-rules`.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use memchr::memmem::Finder;
use regex::bytes::{Regex, RegexBuilder};

use super::prefilter;

/// Which characters belong to a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Charset {
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `_` and `-`.
    Word,
    /// Digits and `a` to `f`.
    Hex,
    /// Base64 in both alphabets, padding, and `.`.
    Base64,
}

impl Charset {
    fn has(self, c: u8) -> bool {
        match self {
            Charset::Alnum => c.is_ascii_alphanumeric(),
            Charset::Word => c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'),
            Charset::Hex => c.is_ascii_hexdigit(),
            Charset::Base64 => {
                c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'+' | b'/' | b'=' | b'.')
            }
        }
    }
}

/// A shape: kind, prefix, charset, and how many characters follow at least.
struct Shape(&'static str, &'static str, Charset, usize);

use Charset::{Alnum, Base64, Hex, Word};

const SHAPES: &[Shape] = &[
    Shape("github-pat", "ghp_", Alnum, 20),
    Shape("github-oauth", "gho_", Alnum, 20),
    Shape("github-app", "ghu_", Alnum, 20),
    Shape("github-app", "ghs_", Alnum, 20),
    Shape("github-refresh-token", "ghr_", Alnum, 20),
    Shape("github-fine-grained-pat", "github_pat_", Word, 22),
    Shape("gitlab-pat", "glpat-", Word, 16),
    Shape("gitlab-token", "gldt-", Word, 16),
    Shape("gitlab-token", "glrt-", Word, 16),
    Shape("gitlab-token", "glcbt-", Word, 16),
    Shape("gitlab-token", "glptt-", Word, 16),
    Shape("gitlab-token", "glft-", Word, 16),
    Shape("gitlab-token", "glsoat-", Word, 16),
    Shape("gitlab-token", "glagent-", Word, 16),
    Shape("gitlab-token", "GR1348941", Word, 16),
    Shape("bitbucket-token", "ATBB", Alnum, 20),
    Shape("atlassian-token", "ATATT3", Base64, 30),
    Shape("atlassian-token", "ATCTT3", Base64, 30),
    Shape("npm-token", "npm_", Alnum, 20),
    Shape("pypi-token", "pypi-AgE", Word, 24),
    Shape("pypi-token", "pypi-", Word, 50),
    Shape("rubygems-token", "rubygems_", Hex, 24),
    Shape("crates-io-token", "cio", Alnum, 32),
    Shape("nuget-key", "oy2", Alnum, 40),
    Shape("clojars-token", "CLOJARS_", Alnum, 32),
    Shape("docker-pat", "dckr_pat_", Word, 16),
    Shape("docker-oat", "dckr_oat_", Word, 16),
    Shape("slack-token", "xoxb-", Word, 12),
    Shape("slack-token", "xoxp-", Word, 12),
    Shape("slack-token", "xoxa-", Word, 12),
    Shape("slack-token", "xoxo-", Word, 12),
    Shape("slack-token", "xoxr-", Word, 12),
    Shape("slack-token", "xoxs-", Word, 12),
    Shape("slack-token", "xoxc-", Word, 12),
    Shape("slack-token", "xoxd-", Base64, 12),
    Shape("slack-token", "xoxe-", Word, 12),
    Shape("slack-token", "xoxe.", Base64, 12),
    Shape("slack-token", "xapp-", Word, 12),
    Shape("slack-token", "xwfp-", Word, 12),
    Shape("discord-token", "mfa.", Word, 40),
    Shape("stripe-secret-key", "sk_live_", Alnum, 14),
    Shape("stripe-secret-key", "sk_test_", Alnum, 14),
    Shape("stripe-restricted-key", "rk_live_", Alnum, 14),
    Shape("stripe-restricted-key", "rk_test_", Alnum, 14),
    Shape("stripe-webhook-secret", "whsec_", Base64, 20),
    Shape("square-access-token", "sq0atp-", Word, 16),
    Shape("square-oauth-secret", "sq0csp-", Word, 24),
    Shape("square-access-token", "EAAAE", Word, 50),
    Shape("paypal-token", "access_token$production$", Base64, 20),
    Shape("adyen-key", "AQE", Base64, 60),
    Shape("flutterwave-key", "FLWSECK", Base64, 16),
    Shape("razorpay-key", "rzp_live_", Alnum, 12),
    Shape("razorpay-key", "rzp_test_", Alnum, 12),
    Shape("plaid-token", "access-production-", Word, 24),
    Shape("plaid-token", "access-sandbox-", Word, 24),
    Shape("openai-key", "sk-proj-", Word, 20),
    Shape("openai-key", "sk-svcacct-", Word, 20),
    Shape("openai-key", "sk-admin-", Word, 20),
    Shape("openai-key", "sk-None-", Word, 20),
    Shape("anthropic-key", "sk-ant-", Word, 16),
    Shape("openrouter-key", "sk-or-", Word, 16),
    Shape("langfuse-key", "sk-lf-", Word, 16),
    Shape("langfuse-key", "pk-lf-", Word, 16),
    Shape("openai-key", "sk-", Word, 20),
    Shape("huggingface-token", "hf_", Alnum, 20),
    Shape("huggingface-token", "api_org_", Alnum, 20),
    Shape("replicate-token", "r8_", Alnum, 20),
    Shape("groq-key", "gsk_", Alnum, 20),
    Shape("perplexity-key", "pplx-", Alnum, 20),
    Shape("xai-key", "xai-", Alnum, 20),
    Shape("fireworks-key", "fw_", Alnum, 16),
    Shape("together-key", "tgp_v1_", Word, 20),
    Shape("tavily-key", "tvly-", Word, 16),
    Shape("firecrawl-key", "fc-", Hex, 24),
    Shape("nvidia-key", "nvapi-", Word, 20),
    Shape("pinecone-key", "pcsk_", Word, 20),
    Shape("langsmith-key", "lsv2_pt_", Word, 20),
    Shape("langsmith-key", "lsv2_sk_", Word, 20),
    Shape("langsmith-key", "ls__", Alnum, 20),
    Shape("e2b-key", "e2b_", Hex, 24),
    Shape("apify-token", "apify_api_", Alnum, 16),
    Shape("gcp-api-key", "AIza", Word, 24),
    Shape("google-oauth-secret", "GOCSPX-", Word, 16),
    Shape("google-oauth-token", "ya29.", Base64, 20),
    Shape("google-refresh-token", "1//0", Word, 30),
    Shape("facebook-token", "EAACEdEose0cBA", Alnum, 20),
    Shape("facebook-token", "EAAG", Alnum, 80),
    Shape("azure-storage-key", "AccountKey=", Base64, 40),
    Shape("azure-sas-key", "SharedAccessKey=", Base64, 30),
    Shape("digitalocean-token", "dop_v1_", Hex, 40),
    Shape("digitalocean-token", "doo_v1_", Hex, 40),
    Shape("digitalocean-token", "dor_v1_", Hex, 40),
    Shape("heroku-api-key-v2", "HRKU-", Word, 30),
    Shape("flyio-access-token", "fo1_", Word, 30),
    Shape("flyio-access-token", "fm2_", Base64, 60),
    Shape("flyio-access-token", "fm1r_", Base64, 60),
    Shape("flyio-access-token", "fm1a_", Base64, 60),
    Shape("render-api-key", "rnd_", Alnum, 20),
    Shape("netlify-token", "nfp_", Alnum, 20),
    Shape("netlify-token", "nfc_", Alnum, 20),
    Shape("vercel-token", "vercel_blob_rw_", Word, 20),
    Shape("vercel-token", "vck_", Alnum, 20),
    Shape("vercel-token", "vcp_", Alnum, 20),
    Shape("supabase-key", "sbp_", Hex, 24),
    Shape("supabase-key", "sb_secret_", Word, 16),
    Shape("planetscale-token", "pscale_tkn_", Base64, 20),
    Shape("planetscale-token", "pscale_pw_", Base64, 20),
    Shape("planetscale-token", "pscale_oauth_", Base64, 20),
    Shape("neon-key", "napi_", Alnum, 30),
    Shape("databricks-token", "dapi", Hex, 24),
    Shape("datadog-key", "ddapp_", Alnum, 24),
    Shape("newrelic-key", "NRAK-", Alnum, 16),
    Shape("newrelic-key", "NRII-", Word, 16),
    Shape("newrelic-key", "NRJS-", Hex, 14),
    Shape("sentry-token", "sntrys_", Base64, 30),
    Shape("sentry-token", "sntryu_", Hex, 24),
    Shape("grafana-token", "glc_", Base64, 24),
    Shape("grafana-token", "glsa_", Word, 24),
    Shape("dynatrace-token", "dt0c01.", Base64, 30),
    Shape("posthog-key", "phx_", Word, 20),
    Shape("posthog-key", "phc_", Word, 20),
    Shape("vault-token", "hvs.", Word, 20),
    Shape("vault-token", "hvb.", Word, 20),
    Shape("vault-token", "hvr.", Word, 20),
    Shape("doppler-token", "dp.pt.", Alnum, 20),
    Shape("doppler-token", "dp.st.", Base64, 20),
    Shape("doppler-token", "dp.ct.", Alnum, 20),
    Shape("doppler-token", "dp.sa.", Alnum, 20),
    Shape("infisical-token", "st.", Hex, 60),
    Shape("1password-token", "ops_eyJ", Base64, 60),
    Shape("1password-key", "A3-", Word, 30),
    Shape("pulumi-token", "pul-", Hex, 24),
    Shape("terraform-token", "atlasv1.", Base64, 40),
    Shape("postman-key", "PMAK-", Word, 24),
    Shape("linear-key", "lin_api_", Alnum, 20),
    Shape("linear-key", "lin_oauth_", Alnum, 20),
    Shape("notion-token", "ntn_", Alnum, 24),
    Shape("notion-token", "secret_", Alnum, 32),
    Shape("figma-token", "figd_", Word, 20),
    Shape("figma-token", "figu_", Word, 20),
    Shape("typeform-token", "tfp_", Base64, 30),
    Shape("shopify-token", "shpat_", Hex, 20),
    Shape("shopify-token", "shpca_", Hex, 20),
    Shape("shopify-token", "shppa_", Hex, 20),
    Shape("shopify-secret", "shpss_", Hex, 20),
    Shape("sendgrid-api-key", "SG.", Base64, 30),
    Shape("sendinblue-key", "xkeysib-", Word, 40),
    Shape("sendinblue-key", "xsmtpsib-", Word, 40),
    Shape("mailgun-api-key", "key-", Hex, 24),
    Shape("mapbox-token", "sk.eyJ", Base64, 40),
    Shape("mapbox-token", "pk.eyJ", Base64, 40),
    Shape("twilio-api-key", "SK", Hex, 28),
    Shape("intercom-token", "dG9rO", Base64, 30),
    Shape("contentful-token", "CFPAT-", Word, 30),
    Shape("okta-token", "SSWS ", Word, 30),
    Shape("easypost-key", "EZAK", Alnum, 40),
    Shape("easypost-key", "EZTK", Alnum, 40),
    Shape("duffel-token", "duffel_live_", Base64, 30),
    Shape("duffel-token", "duffel_test_", Base64, 30),
    Shape("frameio-token", "fio-u-", Word, 40),
    Shape("prefect-key", "pnu_", Alnum, 24),
    Shape("readme-key", "rdme_", Alnum, 40),
    Shape("circleci-token", "CCIPAT_", Word, 30),
    Shape("circleci-token", "CCIPRJ_", Word, 30),
    Shape("buildkite-token", "bkua_", Alnum, 24),
    Shape("sourcegraph-token", "sgp_", Word, 24),
    Shape("tailscale-key", "tskey-", Word, 16),
    Shape("cloudflare-origin-ca-key", "v1.0-", Word, 60),
    Shape("age-secret-key", "AGE-SECRET-KEY-1", Alnum, 30),
    Shape("wakatime-key", "waka_", Word, 24),
    Shape("openvpn-key", "oaat_", Word, 24),
    Shape("aws-access-key", "AKIA", Alnum, 12),
    Shape("aws-access-key", "ASIA", Alnum, 12),
    Shape("aws-access-key", "ABIA", Alnum, 12),
    Shape("aws-access-key", "ACCA", Alnum, 12),
    Shape("aws-bedrock-key", "ABSK", Base64, 80),
    Shape("alibaba-key", "LTAI", Alnum, 14),
    Shape("tencent-key", "AKID", Alnum, 26),
    Shape("yandex-key", "AQVN", Word, 30),
    Shape("yandex-token", "t1.9eu", Base64, 30),
];

/// Patterns of the crate that say more than a prefix does, with a text that each of their matches contains.
const PATTERNS: &[(&str, &str)] = &[
    ("discord-webhook", "discord.com/api/webhooks"),
    ("discord-webhook", "discordapp.com/api/webhooks"),
    ("slack-webhook", "hooks.slack.com/services"),
];

/// A pattern of our own, with a text that each of its matches contains.
const OWN_PATTERNS: &[(&str, &str, &str)] = &[
    (
        "teams-webhook",
        ".webhook.office.com/",
        r"https://[a-z0-9-]{1,80}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{20,300}",
    ),
    (
        "zapier-webhook",
        "hooks.zapier.com/hooks",
        r"https://hooks\.zapier\.com/hooks/catch/[A-Za-z0-9/]{6,80}",
    ),
    ("telegram-bot-token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{30,40}"),
    ("discord-token", ".G", r"[MNO][A-Za-z0-9_-]{22,27}\.G[A-Za-z0-9_-]{5}\.[A-Za-z0-9_-]{25,45}"),
    ("resend-key", "re_", r"re_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,30}"),
    ("mailchimp-api-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
];

/// How far a match of a pattern reaches before and behind its text, at most.
const REACH: usize = 400;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpan {
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
    /// The id of the rule that found it.
    pub kind: Arc<str>,
    /// How its marker is quoted, so that the syntax around stays valid: 0 not at all, 1 in quotes, 2 in escaped quotes, and so on.
    pub(super) quotes: u8,
}

impl SecretSpan {
    pub(super) fn new(start: usize, end: usize, kind: impl Into<Arc<str>>) -> SecretSpan {
        SecretSpan { start, end, kind: kind.into(), quotes: 0 }
    }

    /// The same in a text in which this one begins at `offset`.
    pub(super) fn shifted(self, offset: usize) -> SecretSpan {
        SecretSpan { start: self.start + offset, end: self.end + offset, ..self }
    }
}

/// The kind of a value that a name shows.
pub(crate) const NAMED: &str = "named";

/// A value that a name shows.
pub(super) fn named_span(start: usize, end: usize) -> SecretSpan {
    static KIND: LazyLock<Arc<str>> = LazyLock::new(|| NAMED.into());
    SecretSpan::new(start, end, Arc::clone(&KIND))
}

enum Rule {
    Shape(&'static Shape),
    Pattern(Arc<str>, Regex),
}

struct Table {
    prefixes: AhoCorasick,
    /// The rule of each prefix.
    rules: Vec<Rule>,
    /// The texts of the patterns.
    parts: Vec<Finder<'static>>,
}

/// How many characters follow the prefix of each shape, at least.
pub(super) const BODY_MIN: usize = 12;

/// How long a prefix is, at most.
const PREFIX_MAX: usize = 24;

impl Table {
    /// The parts of a text in which a hit can count: a run of characters that a shape can have, with its prefix; the text of a
    /// pattern; and what was found before, of which a prefix says the kind.
    fn places(&self, text: &[u8], runs: &[Range<usize>], found: &[SecretSpan]) -> Vec<Range<usize>> {
        if prefilter::is_off() {
            return Vec::from([0..text.len()]);
        }
        let is_varied = |run: &&Range<usize>| {
            text[run.start..run.end].iter().any(|c| matches!(c, b'0'..=b'9' | b'A'..=b'Z'))
        };
        let mut places: Vec<Range<usize>> =
            runs.iter().filter(is_varied).map(|run| run.start.saturating_sub(PREFIX_MAX)..run.end).collect();
        places.extend(found.iter().map(|one| one.start..one.end));
        for part in &self.parts {
            places.extend(part.find_iter(text).map(|at| at..at + part.needle().len()));
        }
        prefilter::joined(places)
    }
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut prefixes: Vec<&str> = Vec::new();
    let mut rules = Vec::new();
    for shape in SHAPES {
        prefixes.push(shape.1);
        rules.push(Rule::Shape(shape));
    }
    let of_crate = nosecrets_rules::load_builtin_rules().unwrap_or_default();
    for (id, part) in PATTERNS {
        if let Some(regex) =
            of_crate.iter().find(|rule| rule.id == *id).and_then(|rule| compile(&rule.pattern))
        {
            prefixes.push(part);
            rules.push(Rule::Pattern((*id).into(), regex));
        }
    }
    for (id, part, pattern) in OWN_PATTERNS {
        if let Some(regex) = compile(pattern) {
            prefixes.push(part);
            rules.push(Rule::Pattern((*id).into(), regex));
        }
    }
    let prefixes = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .match_kind(MatchKind::Standard)
        .build(&prefixes)
        .expect("some hundred short texts");
    let parts = PATTERNS.iter().map(|(_, part)| *part).chain(OWN_PATTERNS.iter().map(|(_, part, _)| *part));
    Table { prefixes, rules, parts: parts.map(Finder::new).collect() }
});

fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

/// All rules as text, for their digest.
pub(super) fn text() -> String {
    let shapes = SHAPES
        .iter()
        .map(|Shape(kind, prefix, charset, least)| format!("{kind} {prefix} {charset:?} {least}"));
    let patterns = PATTERNS.iter().map(|(id, part)| format!("{id} {part}"));
    let own = OWN_PATTERNS.iter().map(|(id, part, pattern)| format!("{id} {part} {pattern}"));
    shapes.chain(patterns).chain(own).collect::<Vec<_>>().join("\n")
}

/// The kinds of all shapes.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    let shapes = SHAPES.iter().map(|Shape(kind, ..)| *kind);
    shapes.chain(PATTERNS.iter().map(|(id, _)| *id)).chain(OWN_PATTERNS.iter().map(|(id, ..)| *id))
}

/// Finds secrets by their shapes, in order, none inside another. `runs` are those of [`BODY_MIN`] characters and more.
pub(super) fn find(text: &[u8], runs: &[Range<usize>], found: &mut Vec<SecretSpan>) {
    let table = &*TABLE;
    let mut upto = 0;
    // The place at which the pattern of each rule was last tried: matches of its text that are close together are tried once.
    let mut tried: Vec<usize> = Vec::new();
    let places = table.places(text, runs, found);
    for (hit, at) in places.into_iter().flat_map(|part| {
        let hits = table.prefixes.find_overlapping_iter(&text[part.clone()]);
        hits.map(move |hit| (hit.pattern().as_usize(), part.start + hit.start()..part.start + hit.end()))
    }) {
        match &table.rules[hit] {
            Rule::Shape(Shape(kind, prefix, charset, least)) => {
                let is_glued = !is_boundary(text, at.start);
                let is_other = is_glued && !is_distinct(text, at.start, at.end);
                if is_other || (is_common(&text[at.start..at.end]) && is_joined(text, at.start)) {
                    continue;
                }
                // A longer prefix at the same place says more.
                if let Some(last) =
                    found.last_mut().filter(|last| last.start == at.start && last.end > at.end)
                {
                    last.kind = (*kind).into();
                    continue;
                }
                if at.start < upto {
                    continue;
                }
                let end = end_of_token(text, at.end, *charset);
                let body = &text[at.end..end];
                if body.len() >= *least && is_varied(body) && (!is_glued || is_drawn(body)) {
                    upto = end;
                    found.push(SecretSpan::new(at.start - first_part(text, at.start, prefix), end, *kind));
                }
            }
            Rule::Pattern(kind, regex) => {
                if tried.is_empty() {
                    tried.resize(table.rules.len(), 0);
                }
                let tried = &mut tried[hit];
                if at.start < *tried {
                    continue;
                }
                let (from, to) =
                    (at.start.saturating_sub(REACH).max(*tried), (at.end + REACH).min(text.len()));
                let mut last = from;
                for matched in regex.captures_iter(&text[from..to]) {
                    let whole = matched.get(1).or(matched.get(0)).expect("a match");
                    let (start, end) = (from + whole.start(), from + whole.end());
                    let is_word_before = start >= 3 && text[..start].ends_with(b"bot");
                    if is_boundary(text, start) || is_word_before {
                        found.push(SecretSpan::new(start, end, Arc::clone(kind)));
                    }
                    last = last.max(end);
                }
                *tried = last.max(at.end);
            }
        }
    }
}

/// Whether each shape has the body and the prefix that [`Table::places`] looks for.
#[cfg(test)]
pub(super) fn is_found_by_places() -> bool {
    SHAPES.iter().all(|Shape(_, prefix, _, least)| *least >= BODY_MIN && prefix.len() <= PREFIX_MAX)
}

/// Prefixes whose tokens have one length, with that.
const LENGTHS: [(&str, usize); 13] = [
    ("ghp_", 40),
    ("gho_", 40),
    ("ghu_", 40),
    ("ghs_", 40),
    ("ghr_", 40),
    ("github_pat_", 93),
    ("glpat-", 26),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 39),
    ("npm_", 40),
    ("hf_", 37),
    ("dop_v1_", 71),
];

/// Whether a token is shorter than all tokens with its prefix are.
pub(crate) fn is_cut(token: &str) -> bool {
    LENGTHS.iter().any(|(prefix, length)| token.starts_with(prefix) && token.len() < *length)
}

/// Whether a token has just the length that all tokens with its prefix have.
pub(crate) fn has_length(token: &str) -> bool {
    LENGTHS.iter().any(|(prefix, length)| token.starts_with(prefix) && token.len() == *length)
}

/// The length of the part of a token of Terraform that is before its sign.
fn first_part(text: &[u8], start: usize, prefix: &str) -> usize {
    let is_second = prefix == "atlasv1." && start > 0 && text[start - 1] == b'.';
    let lead = text[..start].iter().rev().take(20);
    if is_second { lead.take_while(|c| c.is_ascii_alphanumeric() || **c == b'.').count() } else { 0 }
}

/// The end of the characters of a token. Those that end a sentence or pad nothing are not part of it.
fn end_of_token(text: &[u8], from: usize, charset: Charset) -> usize {
    let mut end = from;
    while end < text.len() && charset.has(text[end]) {
        end += 1;
    }
    while end > from && matches!(text[end - 1], b'.' | b'-' | b'/') {
        end -= 1;
    }
    end
}

/// Whether no token reaches over this place from the left.
fn is_boundary(text: &[u8], at: usize) -> bool {
    at == 0 || {
        let before = text[at - 1];
        // An escape of a text in a text, like `\nghp_`, ends in a letter.
        let escaped = at >= 2 && text[at - 2] == b'\\' && matches!(before, b'n' | b't' | b'r');
        escaped || !(before.is_ascii_alphanumeric() || before == b'_')
    }
}

/// Whether a prefix is so much its own that a letter right before it changes nothing: `tokenghp_`, and not the end of `monkey-`.
fn is_distinct(text: &[u8], start: usize, end: usize) -> bool {
    let prefix = &text[start..end];
    prefix.len() >= 4
        && !is_common(prefix)
        && prefix[..prefix.len() - 1].iter().any(u8::is_ascii_alphanumeric)
        && matches!(prefix.last(), Some(b'_' | b'-'))
        && (text[start - 1].is_ascii_alphabetic() || text[start - 1] == b'_')
}

/// Whether a prefix is also the end of longer names.
fn is_common(prefix: &[u8]) -> bool {
    matches!(
        prefix,
        b"key-" | b"sk-" | b"secret_" | b"fc-" | b"pul-" | b"api_org_" | b"fw_" | b"hf_" | b"re_"
    )
}

/// Whether characters were drawn by chance: digits and letters of both cases, or a long run of digits of base 16.
fn is_drawn(body: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| body.iter().take(64).any(is);
    let is_hex = body.len() >= 32 && body.iter().all(u8::is_ascii_hexdigit);
    is_hex
        || (body.len() >= 20
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase))
}

/// Whether a name has more to the left: a short prefix such as `key-` is also the end of a longer name.
fn is_joined(text: &[u8], at: usize) -> bool {
    at > 0 && matches!(text[at - 1], b'-' | b'.' | b'/' | b'+')
}

/// Whether characters differ enough to be chosen by chance: not `xxxx`, `....` or a word.
pub(super) fn is_varied(body: &[u8]) -> bool {
    let mut seen = [false; 256];
    let (mut distinct, mut digits, mut uppers, mut lowers) = (0, 0, 0, 0);
    for &c in body.iter().take(256) {
        digits += usize::from(c.is_ascii_digit());
        uppers += usize::from(c.is_ascii_uppercase());
        lowers += usize::from(c.is_ascii_lowercase());
        if !std::mem::replace(&mut seen[usize::from(c)], true) {
            distinct += 1;
        }
    }
    let is_one_case = uppers == body.len() && distinct >= 8 && (12..=32).contains(&body.len());
    distinct >= 6 && (digits > 0 || (uppers >= 2 && lowers >= 2) || is_one_case)
}
