//! A corpus of texts with labelled secrets, and of what only looks like one.
//!
//! Secrets are put together from alphabets when a test runs, so that no file of the project holds what a scanner takes for a live
//! credential. The shapes are those that vendors document; the texts around them are what tools of agents print.

use crate::Dice;

/// The kind of a secret, by the way in which it is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretClass {
    /// It has a shape of its own.
    Shape,
    /// It is beside a name.
    Named,
    /// It is in a sentence.
    Prose,
    /// It is encoded, escaped or wrapped.
    Disguised,
}

/// A text of the corpus.
#[derive(Debug, Clone)]
pub struct SecretCase {
    /// The text.
    pub text: String,
    /// The secret in it, as it is written there; nothing in a look-alike.
    pub secret: Option<(SecretClass, String)>,
    /// The text that must stay; empty in a text with a secret.
    pub kept: String,
}

const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &[u8] = b"0123456789abcdef";
const WORD: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
const SIGNS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!#%+-_.~";

/// Characters of an alphabet by chance.
pub fn drawn(dice: &mut Dice, alphabet: &[u8], count: usize) -> String {
    (0..count).map(|_| char::from(alphabet[dice.below(alphabet.len() as u64) as usize])).collect()
}

/// Shapes as vendors document them: prefix, the alphabet, and how many characters follow.
const SHAPES: &[(&str, &[u8], usize)] = &[
    ("gh|p_", ALNUM, 36),
    ("gh|o_", ALNUM, 36),
    ("gh|s_", ALNUM, 36),
    ("github_|pat_", ALNUM, 82),
    ("gl|pat-", WORD, 20),
    ("gl|rt-", WORD, 20),
    ("xo|xb-", b"0123456789-", 50),
    ("xa|pp-1-", ALNUM, 60),
    ("sk_|live_", ALNUM, 24),
    ("rk_|live_", ALNUM, 24),
    ("wh|sec_", ALNUM, 32),
    ("AK|IA", UPPER, 16),
    ("AI|za", WORD, 35),
    ("GOC|SPX-", WORD, 28),
    ("sk-|ant-api03-", WORD, 93),
    ("sk-|proj-", WORD, 64),
    ("sk|-", ALNUM, 48),
    ("h|f_", ALNUM, 34),
    ("np|m_", ALNUM, 36),
    ("pypi|-AgEIcHlwaS5vcmc", WORD, 120),
    ("dckr|_pat_", WORD, 27),
    ("dop|_v1_", HEX, 64),
    ("S|G.", WORD, 66),
    ("key|-", HEX, 32),
    ("sh|pat_", HEX, 32),
    ("sq0|atp-", WORD, 22),
    ("dap|i", HEX, 32),
    ("NR|AK-", UPPER, 27),
    ("hv|s.", WORD, 90),
    ("gl|sa_", ALNUM, 32),
    ("PM|AK-", HEX, 59),
    ("lin|_api_", ALNUM, 40),
    ("fig|d_", WORD, 40),
    ("nv|api-", WORD, 64),
    ("gs|k_", ALNUM, 52),
    ("r|8_", ALNUM, 37),
    ("pc|sk_", WORD, 70),
    ("lsv2|_pt_", HEX, 42),
    ("tsk|ey-auth-", WORD, 40),
    ("AGE-SECRET|-KEY-1", UPPER, 58),
];

/// Texts for a secret with a shape, in the place of `#`.
const AROUND: &[&str] = &[
    "#",
    "Cloning with # as the user\nremote: done",
    "{\"ok\":true,\"data\":{\"created\":\"#\"}}",
    "2026-01-02T03:04:05Z INFO client created (#), 3 retries left",
    "  - value: #\n    kind: x",
    "$ curl -s https://api.example.org/v1/items?x=#&page=2\n{\"items\":[]}",
    "export SOMETHING='#'",
    "the answer was '#'. Keep it safe.",
    "<item>#</item>",
    "stdout: \\\"#\\\"\\n",
    "[#]",
    "config loaded: a=1;b=#;c=3",
    "-H 'X-Thing: #'",
    "error: request with # was refused (401)",
    "| name | # |",
];

/// Names beside which a secret is, with the text around.
const NAMED: &[&str] = &[
    "DB_PASSWORD=#\nDB_HOST=localhost",
    "export API_KEY=\"#\"",
    "{\"user\":\"app\",\"password\":\"#\",\"retries\":3}",
    "database:\n  user: app\n  password: #\n  pool: 5",
    "client_secret: '#'",
    "[auth]\nsecret_key = \"#\"",
    "Authorization: Bearer #",
    "X-Api-Key: #\nAccept: */*",
    "mysqldump --password=# --all",
    "deploy --token # --region eu",
    "https://example.org/hook?access_token=#&x=1",
    "postgres://app:#@db.example.org:5432/app",
    "{\"headers\":{\"Authorization\":\"Bearer #\"}}",
    "const clientSecret = '#';",
    "  \"private_key_passphrase\": \"#\"",
    "SMTP_PASS=#",
    "spring.datasource.password=#",
    "{\"name\":\"AUTH_TOKEN\",\"value\":\"x\"} AUTH_TOKEN=#",
    "ENV REFRESH_TOKEN=#",
    "signing_key => '#'",
];

const PROSE: &[&str] = &[
    "The password is # and the user is admin.",
    "Use the API key # for staging.",
    "your temporary password: #",
    "Login with token # please",
    "I set the secret to #.",
    "access token was # until yesterday",
];

/// Look-alikes, in the place of `#`.
const KEPT: &[&str] = &[
    "{\"usage\":{\"tokens_used\":#n,\"max_tokens\":4096}}",
    "commit #h40\nAuthor: A <a@example.org>",
    "sha256:#h64  file.tar.gz",
    "\"trace_id\": \"#h32\", \"span_id\": \"#h16\"",
    "request id #u done",
    "index #h7..#h7 100644",
    "the keyboard of the monkey cost #n",
    "primary_key: order_#n",
    "password_policy: min #n characters",
    "PASSWORD=${DB_PASSWORD}",
    "token = os.environ['TOKEN_#n']",
    "api_key: <YOUR_API_KEY>",
    "password must have at least #n characters",
    "etag: \"#h32\"",
    "/usr/lib/python3/site-packages/token_#n/key.py",
    "digest sha512-#b86==",
    "<redacted:github-pat> #n",
    "image: registry.example.org/app@sha256:#h64",
    "next_page_token_count: #n",
    "order #W#n placed by user_#n",
    "author: auth0 integration, #n passes",
    "data:image/png;base64,#b60",
    "test_password_reset_email_#n PASSED",
    "key: value_#n",
    "session_count=#n auth_method=basic",
    "0x#h40 sent 3 ETH",
    "public_key: #b43=",
    "version 1.#n.0 (token ring)",
];

/// Makes a corpus: `count` texts with a secret, and twice as many without.
pub fn corpus(seed: u64, count: usize) -> Vec<SecretCase> {
    let mut dice = Dice(seed);
    let mut cases = Vec::with_capacity(3 * count);
    for number in 0..count {
        cases.push(with_secret(&mut dice, number));
        cases.push(look_alike(&mut dice, 2 * number));
        cases.push(look_alike(&mut dice, 2 * number + 1));
    }
    cases
}

fn of<'t>(dice: &mut Dice, texts: &[&'t str]) -> &'t str {
    texts[dice.below(texts.len() as u64) as usize]
}

fn shape(dice: &mut Dice, number: usize) -> String {
    let (front, alphabet, length) = SHAPES[number % SHAPES.len()];
    format!("{}{}", front.replace('|', ""), drawn(dice, alphabet, length))
}

fn with_secret(dice: &mut Dice, number: usize) -> SecretCase {
    let case = |class, around: &str, secret: String| SecretCase {
        text: around.replace('#', &secret),
        secret: Some((class, secret)),
        kept: String::new(),
    };
    match number % 20 {
        0..10 => {
            let secret = shape(dice, number / 2);
            case(SecretClass::Shape, of(dice, AROUND), secret)
        }
        10..16 => {
            let length = 10 + dice.below(24) as usize;
            let alphabet =
                if dice.below(3) == 0 { &SIGNS[..62] } else { [ALNUM, LOWER, HEX][dice.below(3) as usize] };
            let secret = drawn(dice, alphabet, length.max(12)).replace('#', "k");
            case(SecretClass::Named, of(dice, NAMED), secret)
        }
        16 | 17 => {
            let secret = drawn(dice, ALNUM, 14);
            case(SecretClass::Prose, of(dice, PROSE), secret)
        }
        _ => disguised(dice, number),
    }
}

fn disguised(dice: &mut Dice, number: usize) -> SecretCase {
    let secret = shape(dice, number / 3);
    let (text, shown) = match dice.below(5) {
        0 => {
            let encoded = base64(format!("{{\"auth\":\"{secret}\"}}").as_bytes());
            (format!("payload={encoded} size=3"), encoded)
        }
        1 => {
            let encoded: String = secret.bytes().map(|c| format!("{c:02x}")).collect();
            (format!("hexdump {encoded}"), encoded)
        }
        2 => {
            let escaped = secret.replace('_', "%5F").replace('-', "%2D");
            (format!("GET /cb?next=https%3A%2F%2Fx%2F%3Fq%3D{escaped}%26y%3D1"), escaped)
        }
        3 => {
            let at = secret.len() / 2;
            let wrapped = format!("{}\u{200b}{}", &secret[..at], &secret[at..]);
            (format!("copied: {wrapped} end"), wrapped)
        }
        _ => {
            let colored = format!("{}\u{1b}[0m\u{1b}[32m{}", &secret[..6], &secret[6..]);
            (format!("\u{1b}[32m{colored}\u{1b}[0m"), colored)
        }
    };
    SecretCase { text, secret: Some((SecretClass::Disguised, shown)), kept: String::new() }
}

/// Base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let word =
            part.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for place in 0..4 {
            match place <= part.len() {
                true => text.push(char::from(DIGITS[(word >> (18 - 6 * place) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

fn look_alike(dice: &mut Dice, number: usize) -> SecretCase {
    let mut text = String::new();
    let mut rest = KEPT[number % KEPT.len()];
    while let Some(at) = rest.find('#') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        let count = rest.get(1..=digits).and_then(|count| count.parse().ok()).unwrap_or(0);
        let (made, taken) = match rest.as_bytes().first() {
            Some(b'n') => (dice.below(10_000).to_string(), 1),
            Some(b'h') if digits > 0 => (drawn(dice, HEX, count), 1 + digits),
            Some(b'b') if digits > 0 => (drawn(dice, ALNUM, count), 1 + digits),
            Some(b'u') => {
                let part = |dice: &mut Dice, count| drawn(dice, HEX, count);
                let groups = [8, 4, 4, 4, 12].map(|count| part(dice, count));
                (groups.join("-"), 1)
            }
            _ => ("#".to_owned(), 0),
        };
        text.push_str(&made);
        rest = &rest[taken..];
    }
    text.push_str(rest);
    SecretCase { kept: text.clone(), text, secret: None }
}
