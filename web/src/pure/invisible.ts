// Splits a text at characters that are not seen or that reorder what is seen: each becomes a named token.

export type Piece = { text: string } | { token: string; name: string };

const NAMES: Record<number, string> = {
  0x00: "NUL", 0x07: "BEL", 0x08: "BACKSPACE", 0x09: "TAB", 0x0a: "LINE FEED", 0x0d: "CR", 0x1b: "ESC", 0x7f: "DEL", 0x85: "NEXT LINE", 0x9b: "CSI",
  0xa0: "NO-BREAK SPACE", 0xad: "SOFT HYPHEN", 0x034f: "COMBINING GRAPHEME JOINER", 0x061c: "ARABIC LETTER MARK",
  0x115f: "HANGUL FILLER", 0x1160: "HANGUL FILLER", 0x17b4: "KHMER INHERENT VOWEL", 0x17b5: "KHMER INHERENT VOWEL",
  0x180e: "MONGOLIAN VOWEL SEPARATOR", 0x200b: "ZERO WIDTH SPACE", 0x200c: "ZERO WIDTH NON-JOINER", 0x200d: "ZERO WIDTH JOINER",
  0x200e: "LEFT-TO-RIGHT MARK", 0x200f: "RIGHT-TO-LEFT MARK", 0x2028: "LINE SEPARATOR", 0x2029: "PARAGRAPH SEPARATOR",
  0x202a: "LEFT-TO-RIGHT EMBEDDING", 0x202b: "RIGHT-TO-LEFT EMBEDDING", 0x202c: "POP DIRECTIONAL FORMATTING",
  0x202d: "LEFT-TO-RIGHT OVERRIDE", 0x202e: "RIGHT-TO-LEFT OVERRIDE", 0x2060: "WORD JOINER",
  0x2066: "LEFT-TO-RIGHT ISOLATE", 0x2067: "RIGHT-TO-LEFT ISOLATE", 0x2068: "FIRST STRONG ISOLATE", 0x2069: "POP DIRECTIONAL ISOLATE",
  0x3000: "IDEOGRAPHIC SPACE", 0x3164: "HANGUL FILLER", 0xfeff: "ZERO WIDTH NO-BREAK SPACE", 0xffa0: "HANGUL FILLER",
};

const SUBJECT =
  /[\u0000-\u0009\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\ue000-\uf8ff]|[\u{e0000}-\u{e0fff}\u{f0000}-\u{10ffff}]|\u{1d173}|\u{1d174}|\u{1d175}|\u{1d176}|\u{1d177}|\u{1d178}|\u{1d179}|\u{1d17a}/u;
const ALL = new RegExp(SUBJECT.source, "gu");
const LINE = new RegExp(`${SUBJECT.source}|\\n`, "gu");

/** The end of a text that is an emoji, with its tone of skin or its selector; `1` and others take a selector before a keycap. */
const EMOJI_BEFORE = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator})$/u;
const JOINED_BEFORE = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier})\ufe0f?$/u;
const EMOJI_AFTER = /^\p{Extended_Pictographic}/u;

/** Whether a joiner or a selector is a part of an emoji: then it is drawn as it is. */
function isOfEmoji(text: string, at: number): boolean {
  const sign = text.charCodeAt(at);
  const before = text.slice(Math.max(0, at - 4), at);
  if (sign === 0x200d) return JOINED_BEFORE.test(before) && EMOJI_AFTER.test(text.slice(at + 1, at + 3));
  if (sign !== 0xfe0e && sign !== 0xfe0f) return false;
  return EMOJI_BEFORE.test(before) || (/[0-9#*]$/.test(before) && text[at + 1] === "\u20e3");
}

/** Whether a text has a character that becomes a token. */
export function hasInvisible(text: string): boolean {
  if (!SUBJECT.test(text)) return false;
  for (const match of text.matchAll(ALL)) if (!isOfEmoji(text, match.index)) return true;
  return false;
}

/** Splits a text into pieces that are shown as they are and tokens. A line feed stays in its piece, but not in one line. */
export function pieces(text: string, isOneLine = false): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(isOneLine ? LINE : ALL)) {
    if (isOfEmoji(text, match.index)) continue;
    if (match.index > from) found.push({ text: text.slice(from, match.index) });
    const code = match[0].codePointAt(0) ?? 0;
    found.push({ token: label(code), name: nameOf(code) });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from) });
  return found;
}

/** Writes a text with its tokens as words: for titles and labels that take no elements. */
export function plain(text: string): string {
  return pieces(text, true)
    .map((piece) => ("text" in piece ? piece.text : `[${piece.token}]`))
    .join("");
}

function label(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function nameOf(code: number): string {
  const known = NAMES[code];
  if (known) return known;
  if (code >= 0xe0000 && code <= 0xe007f) return "TAG CHARACTER";
  if ((code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef)) return "VARIATION SELECTOR";
  if (code < 0xa0) return "CONTROL CHARACTER";
  if (code >= 0xd800 && code <= 0xdfff) return "LONE SURROGATE";
  if ((code >= 0xe000 && code <= 0xf8ff) || code >= 0xf0000) return "PRIVATE USE";
  return "INVISIBLE OR RESERVED CHARACTER";
}
