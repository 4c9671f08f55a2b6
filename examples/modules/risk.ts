// A predicate for dendrer in AssemblyScript: violated when the state has a risk score above 0.75.
// docs/wasm.md has the interface. Built with: asc risk.ts -O3 --runtime stub --use abort= -o risk.wasm

const QUOTE: u8 = 0x22; // "
const BACKSLASH: u8 = 0x5c;

const NAME = memory.data<u8>([0x72, 0x69, 0x73, 0x6b, 0x5f, 0x73, 0x63, 0x6f, 0x72, 0x65]); // risk_score
const NAME_LENGTH: usize = 10;

const ANSWER = memory.data(64);

let at: usize = 0;
let end: usize = 0;

// Gives room for the input: new memory behind what there is. The allocator of the language would begin with a start
// function, which a module may not have. Nothing is given back: the instance ends with the call.
export function alloc(length: i32): usize {
  const place = <usize>memory.size() << 16;
  memory.grow((length >> 16) + 1);
  return place;
}

// Judges the state whose canonical JSON stands there, and returns the place of the answer and its length.
export function evaluate(place: usize, length: i32): u64 {
  at = place;
  end = place + <usize>length;
  if (byte() != 0x7b) return answer('"ok"'); // {
  at++;
  while (byte() == QUOTE) {
    const begin = at + 1;
    skipString();
    const found = at - 1 - begin == NAME_LENGTH && memory.compare(begin, NAME, NAME_LENGTH) == 0;
    at++; // :
    if (found) return judge();
    skipValue();
    at++; // , or }
  }
  return answer('"ok"');
}

// Says what the number that begins here means.
function judge(): u64 {
  const negative = byte() == 0x2d;
  if (negative) at++;
  if (!isDigit(byte())) return answer('{"uncertain":"risk_score is not a number"}');
  let digits: f64 = 0;
  let scale: f64 = 1;
  let behind = false;
  for (; isDigit(byte()) || byte() == 0x2e; at++) {
    if (byte() == 0x2e) {
      behind = true;
      continue;
    }
    digits = digits * 10 + <f64>(byte() - 0x30);
    if (behind) scale *= 10;
  }
  // Canonical JSON has an exponent below 1e-6 and from 1e21 on.
  if (byte() == 0x65) return answer(!negative && load<u8>(at + 1) != 0x2d ? '"violation"' : '"ok"');
  return answer(!negative && digits / scale > 0.75 ? '"violation"' : '"ok"');
}

function byte(): u8 {
  return at < end ? load<u8>(at) : 0;
}

function isDigit(byte: u8): bool {
  return byte >= 0x30 && byte <= 0x39;
}

function skipString(): void {
  for (at++; byte() != QUOTE && at < end; at++) {
    if (byte() == BACKSLASH) at++;
  }
  at++;
}

function skipValue(): void {
  let depth = 0;
  while (at < end) {
    const c = byte();
    if (c == QUOTE) {
      skipString();
      continue;
    }
    if (depth == 0 && (c == 0x2c || c == 0x7d)) return; // , or }
    if (c == 0x7b || c == 0x5b) depth++;
    if (c == 0x7d || c == 0x5d) depth--;
    at++;
  }
}

function answer(text: string): u64 {
  for (let i = 0; i < text.length; i++) store<u8>(ANSWER + <usize>i, <u8>text.charCodeAt(i));
  return (<u64>ANSWER << 32) | <u64>text.length;
}
