// Quotes words for `sh`: a command that was copied runs with exactly these arguments.

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** Quotes a word. A control character would act on a terminal when it is pasted, so such a word is written by `printf`. */
export function quoteWord(word: string): string {
  if (PLAIN.test(word)) return word;
  if (/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/.test(word)) return `"$(printf %b '${octal(word)}')"`;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Joins the words of a command, quoted. */
export function command(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}

function octal(word: string): string {
  const bytes = new TextEncoder().encode(word);
  let text = "";
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c;
    text += isPlain ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, "0")}`;
  }
  return text;
}
