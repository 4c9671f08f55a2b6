// Writes a PNG again without filters: letters of one font repeat, so its rows compress better as they are.

import { crc32, deflateSync, inflateSync } from "node:zlib";

type Chunk = { type: string; data: Buffer };

function chunksOf(png: Buffer): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = 8; at < png.length; ) {
    const size = png.readUInt32BE(at);
    chunks.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + size) });
    at += 12 + size;
  }
  return chunks;
}

/** Returns the value that a filter of PNG predicts from the pixels to the left (`a`), above (`b`) and of both (`c`). */
function predicted(filter: number, a: number, b: number, c: number): number {
  if (filter === 1) return a;
  if (filter === 2) return b;
  if (filter === 3) return (a + b) >> 1;
  if (filter !== 4) return 0;
  const [da, db, dc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return da <= db && da <= dc ? a : db <= dc ? b : c;
}

function chunk({ type, data }: Chunk): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(data.length, 0);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc32(body), body.length + 4);
  return whole;
}

/** Returns the same picture in fewer bytes: 8 bits a channel, not interlaced, as Chromium writes it. */
export function smaller(png: Buffer): Buffer {
  const chunks = chunksOf(png);
  const head = chunks[0]?.data ?? Buffer.alloc(13);
  const [width, height, pixel] = [head.readUInt32BE(0), head.readUInt32BE(4), head[9] === 2 ? 3 : 4];
  const row = width * pixel;
  const filtered = inflateSync(Buffer.concat(chunks.filter((one) => one.type === "IDAT").map((one) => one.data)));
  const plain = Buffer.alloc(height * (row + 1));
  for (let y = 0; y < height; y += 1) {
    const at = y * (row + 1) + 1;
    for (let x = 0; x < row; x += 1) {
      const left = x >= pixel ? (plain[at + x - pixel] ?? 0) : 0;
      const above = y > 0 ? (plain[at - row - 1 + x] ?? 0) : 0;
      const both = x >= pixel && y > 0 ? (plain[at - row - 1 + x - pixel] ?? 0) : 0;
      plain[at + x] = (filtered[at + x] ?? 0) + predicted(filtered[at - 1] ?? 0, left, above, both);
    }
  }
  const data = deflateSync(plain, { level: 9, memLevel: 9 });
  return Buffer.concat([png.subarray(0, 8), chunk({ type: "IHDR", data: head }), chunk({ type: "IDAT", data }), chunk({ type: "IEND", data: Buffer.alloc(0) })]);
}
