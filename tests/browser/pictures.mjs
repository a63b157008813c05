// Pictures of the page that are compared with kept ones: taking, keeping, comparing.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deflateSync } from 'node:zlib';

import { given } from './harness.mjs';

const KEPT = fileURLToPath(new URL('./baselines/', import.meta.url));
const FINGERPRINT = join(KEPT, 'fingerprint.json');
/** Part of the pixels of any band that may differ. */
const TOLERANCE = 0.001;
/** Rows per band: in a tall picture, a changed button must not drown in the rest. */
const BAND = 480;
/** A picture that stays the same this often is what the page looks like. */
const STEADY = 6;
const PAUSE_MS = 200;

/** Text is drawn the same way on every run. */
export const FLAGS = [
  '--font-render-hinting=none',
  '--disable-lcd-text',
  '--force-color-profile=srgb',
];

const isUpdate = process.env.SVC_UPDATE_SNAPSHOTS === '1';

async function load() {
  const modules = given('SVC_BROWSER_MODULES');
  const require = createRequire(join(modules, 'resolve.js'));
  const { PNG } = require('pngjs');
  const main = pathToFileURL(join(modules, 'pixelmatch/index.js'));
  const { default: differing } = await import(main.href);
  return { PNG, differing };
}

/** What decides how text is drawn: the browser, and its shapes and widths with our fonts. */
export async function fingerprint(page) {
  const drawn = await page.evaluate(() => {
    const canvas = document.createElement('canvas');
    canvas.width = 700;
    canvas.height = 30;
    const pen = canvas.getContext('2d', { willReadFrequently: true });
    const stacks = [
      'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif',
      'ui-monospace, "SF Mono", Menlo, "Cascadia Mono", Consolas, "DejaVu Sans Mono", ' +
        '"Liberation Mono", monospace',
    ];
    const seen = [];
    for (const stack of stacks) {
      for (const size of [12, 13, 14, 16, 24]) {
        for (const weight of [400, 600]) {
          pen.clearRect(0, 0, canvas.width, canvas.height);
          pen.font = `${weight} ${size}px ${stack}`;
          const text = 'Sphinx of black quartz, judge my vow: 0123456789 · “…” →';
          pen.fillText(text, 2, 24);
          const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data;
          const shapes = pixels.reduce((sum, v, at) => (sum * 31 + v * (at + 1)) % 4294967291, 7);
          seen.push(pen.measureText(text).width, shapes);
        }
      }
    }
    return JSON.stringify(seen);
  });
  const text = createHash('sha256').update(drawn).digest('hex').slice(0, 16);
  return { browser: await page.browser().version(), text };
}

/** Why nothing can be compared here; empty when it can. */
export async function whyNot(page) {
  const here = await fingerprint(page);
  if (isUpdate) {
    // All are made anew: what is left over belongs to a test that is gone.
    rmSync(KEPT, { recursive: true, force: true });
    mkdirSync(KEPT, { recursive: true });
    writeFileSync(FINGERPRINT, `${JSON.stringify(here, null, 2)}\n`);
    return '';
  }
  if (!existsSync(FINGERPRINT)) return 'not compared: no pictures are kept';
  const kept = JSON.parse(readFileSync(FINGERPRINT, 'utf8'));
  const isSame = kept.browser === here.browser && kept.text === here.text;
  return isSame ? '' : `not compared: other fonts or browser (${here.browser} ${here.text})`;
}

/**
 * Takes pictures until one fits the kept one, or until the page has come to rest and none does.
 * Answers with what is wrong; nothing when all is well.
 */
export async function look(page, name) {
  const { PNG, differing } = await load();
  const file = join(KEPT, `${name}.png`);
  let kept;
  try {
    if (!isUpdate) kept = PNG.sync.read(readFileSync(file));
  } catch {
    return `${name}: no picture is kept; SVC_UPDATE_SNAPSHOTS=1 keeps one`;
  }
  let last;
  for (let steady = 1; steady < STEADY; ) {
    const taken = await page.screenshot({ captureBeyondViewport: false });
    steady = last?.equals(taken) ? steady + 1 : 1;
    last = Buffer.from(taken);
    if (kept) {
      const found = compare(PNG.sync.read(last), kept, differing);
      if (found.isFine) return undefined;
    }
    await new Promise((resume) => setTimeout(resume, PAUSE_MS));
  }
  const now = PNG.sync.read(last);
  if (!kept) {
    const packed = pack(now);
    const { isFine } = compare(now, PNG.sync.read(packed), differing);
    if (!isFine) return `${name}: has too many colours to be kept`;
    writeFileSync(file, packed);
    return undefined;
  }
  const folder = join(process.env.SVC_SHOTS ?? tmpdir(), 'svc-pictures');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}-actual.png`), last);
  const { picture, worst, size } = compare(now, kept, differing);
  if (picture) {
    const whole = new PNG({ width: now.width, height: now.height });
    picture.copy(whole.data);
    writeFileSync(join(folder, `${name}-difference.png`), PNG.sync.write(whole));
  }
  const how = size ?? `${(worst * 100).toFixed(2)} % of a band differ`;
  return `${name}: ${how}; see ${folder}/${name}-*.png`;
}

function compare(now, kept, differing) {
  const { width, height } = now;
  if (width !== kept.width || height !== kept.height) {
    const size = `is ${width}×${height}, was ${kept.width}×${kept.height}`;
    return { isFine: false, size };
  }
  const picture = Buffer.alloc(now.data.length);
  let worst = 0;
  for (let top = 0; top < height; top += BAND) {
    const rows = Math.min(BAND, height - top);
    const [from, to] = [top * width * 4, (top + rows) * width * 4];
    const part = (data) => data.subarray(from, to);
    const count = differing(part(now.data), part(kept.data), part(picture), width, rows, {
      threshold: 0.1,
      includeAA: true,
    });
    worst = Math.max(worst, count / (width * rows));
  }
  return { isFine: worst <= TOLERANCE, picture, worst };
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit += 1) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

function chunk(type, body) {
  const bytes = Buffer.concat([Buffer.from(type, 'latin1'), body]);
  let crc = -1;
  for (const byte of bytes) crc = CRC[(crc ^ byte) & 255] ^ (crc >>> 8);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(body.length, 0);
  ends.writeInt32BE(~crc, 4);
  return Buffer.concat([ends.subarray(0, 4), bytes, ends.subarray(4)]);
}

/** As PNG with a palette: a third of the size. */
function pack({ width, height, data }) {
  const pixels = new Uint32Array(width * height);
  const counts = new Map();
  for (let at = 0; at < pixels.length; at += 1) {
    const colour = (data[at * 4] << 16) | (data[at * 4 + 1] << 8) | data[at * 4 + 2];
    pixels[at] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const byCount = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([colour]) => colour);
  const far = (a, b) =>
    [16, 8, 0].reduce((sum, by) => sum + (((a >> by) & 255) - ((b >> by) & 255)) ** 2, 0);
  // A colour may become a more frequent one that is near; how near decides how many are left.
  let palette;
  let places;
  for (let near = 0; !palette || palette.length > 256; near += 12) {
    palette = [];
    places = new Map();
    for (const colour of byCount) {
      const place = palette.findIndex((other) => far(colour, other) <= near);
      places.set(colour, place < 0 ? palette.push(colour) - 1 : place);
    }
  }
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      rows[y * (width + 1) + 1 + x] = places.get(pixels[y * width + x]);
    }
  }
  const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 3, 0, 0, 0]);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  const colours = Buffer.from(palette.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255]));
  return Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
    chunk('IHDR', head),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
