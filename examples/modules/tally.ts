// A reducer for dendrer in AssemblyScript: an `action.result` whose output has an amount and a category is counted and
// added up under `tally`, in its category. docs/wasm.md has the interface, tally.yaml a pack that names a reducer.
// Built with: asc tally.ts -O3 --runtime stub --use abort= -o tally.wasm

const QUOTE: u8 = 0x22; // "
const BACKSLASH: u8 = 0x5c;

let end: usize = 0;
let out: usize = 0;
let begin: usize = 0;

// Gives room for the input: new memory behind what there is. The allocator of the language would begin with a start
// function, which a module may not have. Nothing is given back: the instance ends with the call.
export function alloc(length: i32): usize {
  const place = <usize>memory.size() << 16;
  memory.grow((length >> 16) + 1);
  return place;
}

// Says what a transition changes: {"state":...,"transition":...} stands there as canonical JSON.
export function reduce(place: usize, length: i32): u64 {
  end = place + <usize>length;
  // The answer has the name of a category twice, and each sign of it may become two.
  begin = alloc(4 * length + 1024);
  out = begin;
  const transition = member(place, 'transition');
  if (!is(member(transition, 'type'), '"action.result"')) return nothing();
  const output = member(member(transition, 'result'), 'output');
  const amount = member(output, 'amount');
  if (amount == 0) return nothing();
  if (load<u8>(amount) != 0x2d && !isDigit(load<u8>(amount))) return error('an amount is a number');
  const category = member(output, 'category');
  if (category == 0 || load<u8>(category) != QUOTE) return error('an amount has a category');
  if (same(member(member(place, 'state'), 'tally'), category) == 0) return error('there is no such category');
  put('[{"add":"/tally/');
  putName(category);
  put('/count","value":1},{"add":"/tally/');
  putName(category);
  put('/sum","value":');
  putBytes(amount, skip(amount));
  put('}]');
  return answer();
}

// The place of the value that an object has under a name, without a sign that would be written with a backslash; 0 where
// there is none, or no object.
function member(at: usize, name: string): usize {
  if (at == 0 || load<u8>(at) != 0x7b) return 0; // {
  at++;
  while (at < end && load<u8>(at) == QUOTE) {
    const value = skip(at) + 1;
    if (value - at == <usize>name.length + 3 && is(at + 1, name)) return value;
    at = skip(value) + 1; // behind , or }
  }
  return 0;
}

// As `member`, for a name that stands somewhere: canonical JSON writes each text in one way.
function same(at: usize, text: usize): usize {
  if (at == 0 || load<u8>(at) != 0x7b) return 0;
  const length = skip(text) - text;
  at++;
  while (at < end && load<u8>(at) == QUOTE) {
    const value = skip(at) + 1;
    if (value - 1 - at == length && memory.compare(at, text, length) == 0) return value;
    at = skip(value) + 1;
  }
  return 0;
}

// The place behind the value that stands there.
function skip(at: usize): usize {
  let depth = 0;
  while (at < end) {
    const c = load<u8>(at);
    at++;
    if (c == QUOTE) {
      for (; at < end && load<u8>(at) != QUOTE; at++) {
        if (load<u8>(at) == BACKSLASH) at++;
      }
      at++;
    } else if (c == 0x7b || c == 0x5b) {
      depth++;
    } else if (c == 0x7d || c == 0x5d) {
      depth--;
    } else {
      for (; at < end && !isEnd(load<u8>(at)); at++) {}
    }
    if (depth == 0) return at;
    if (load<u8>(at) == 0x2c || load<u8>(at) == 0x3a) at++; // , or :
  }
  return at;
}

function isEnd(byte: u8): bool {
  return byte == 0x2c || byte == 0x3a || byte == 0x7d || byte == 0x5d;
}

function isDigit(byte: u8): bool {
  return byte >= 0x30 && byte <= 0x39;
}

function is(at: usize, text: string): bool {
  if (at == 0) return false;
  for (let i = 0; i < text.length; i++) {
    if (load<u8>(at + <usize>i) != <u8>text.charCodeAt(i)) return false;
  }
  return true;
}

function put(text: string): void {
  for (let i = 0; i < text.length; i++) store<u8>(out++, <u8>text.charCodeAt(i));
}

function putBytes(from: usize, to: usize): void {
  memory.copy(out, from, to - from);
  out += to - from;
}

// Writes the text that stands there as a name in a path, which is itself a text of JSON: only ~ and / are written otherwise.
function putName(text: usize): void {
  const last = skip(text) - 1;
  for (let at = text + 1; at < last; at++) {
    const byte = load<u8>(at);
    if (byte == 0x7e) {
      put('~0');
    } else if (byte == 0x2f) {
      put('~1');
    } else {
      store<u8>(out++, byte);
    }
  }
}

function nothing(): u64 {
  put('[]');
  return answer();
}

function error(why: string): u64 {
  put('{"error":"');
  put(why);
  put('"}');
  return answer();
}

function answer(): u64 {
  return (<u64>begin << 32) | <u64>(out - begin);
}
