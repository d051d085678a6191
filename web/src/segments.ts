// What the allocator held at a moment: segments with the blocks in them, and the free space between.

import { NEVER, type Recording } from "./decode";

export interface Piece {
  address: number;
  size: number;
  life: number; // -1: free
}

export interface Segment {
  address: number;
  size: number;
  free: number;
  stream: number;
  pool: number;
  isSmall: boolean;
  isPages: boolean;
  pieces: Piece[]; // in address order; they sum to size
}

/** Segments right after the event, in address order; mapped pages beside each other are one. */
export function segmentsAt(recording: Recording, event: number, live: Uint32Array): Segment[] {
  const held = heldAt(recording, event);
  const { lives, kinds } = recording;
  const order = Array.from(live).sort((a, b) => lives.address[a] - lives.address[b]);
  let next = 0;
  for (const segment of held) {
    let at = segment.address;
    const end = segment.address + segment.size;
    while (next < order.length && lives.address[order[next]] < at) next++;
    for (; next < order.length && lives.address[order[next]] < end; next++) {
      const life = order[next];
      const address = lives.address[life];
      if (address > at) segment.pieces.push({ address: at, size: address - at, life: -1 });
      const size = Math.min(kinds.size[lives.kind[life]], end - address);
      segment.pieces.push({ address, size, life });
      at = Math.max(at, address + size);
    }
    if (at < end) segment.pieces.push({ address: at, size: end - at, life: -1 });
    for (const piece of segment.pieces) if (piece.life < 0) segment.free += piece.size;
  }
  return held;
}

interface Range {
  address: number;
  size: number;
  entry: number; // of the driver's list: what it came with
}

function heldAt(recording: Recording, event: number): Segment[] {
  const { driver } = recording;
  const whole = new Map<number, Range>();
  let pages: Range[] = [];
  for (let i = 0; i < driver.count && driver.event[i] <= event; i++) {
    const range = { address: driver.address[i], size: driver.size[i], entry: i };
    if (driver.pages[i]) pages = driver.gain[i] ? [...pages, range] : without(pages, range);
    else if (driver.gain[i]) whole.set(range.address, range);
    else whole.delete(range.address);
  }
  const ranges = [...whole.values(), ...pages].sort((a, b) => a.address - b.address);
  const segments: Segment[] = [];
  for (const range of ranges) {
    const last = segments[segments.length - 1];
    const i = range.entry;
    const joins =
      last !== undefined &&
      last.isPages &&
      driver.pages[i] === 1 &&
      last.address + last.size === range.address &&
      last.stream === driver.stream[i] &&
      last.pool === driver.pool[i];
    if (joins) {
      last.size += range.size;
      continue;
    }
    segments.push({
      address: range.address,
      size: range.size,
      free: 0,
      stream: driver.stream[i],
      pool: driver.pool[i],
      isSmall: driver.small[i] === 1,
      isPages: driver.pages[i] === 1,
      pieces: [],
    });
  }
  return segments;
}

function without(ranges: Range[], gone: Range): Range[] {
  const left: Range[] = [];
  const end = gone.address + gone.size;
  for (const range of ranges) {
    const rangeEnd = range.address + range.size;
    if (rangeEnd <= gone.address || range.address >= end) {
      left.push(range);
      continue;
    }
    if (range.address < gone.address) left.push({ ...range, size: gone.address - range.address });
    if (rangeEnd > end) left.push({ address: end, size: rangeEnd - end, entry: range.entry });
  }
  return left;
}

/** Free bytes as one request sees them: they sum to reserved minus active. */
export interface FreeSpace {
  usable: number;
  pieces: number;
  largest: number;
  otherClass: number;
  otherStream: number;
  otherPool: number;
}

export function freeSpaceFor(segments: Segment[], stream: number, pool: number, isSmall: boolean): FreeSpace {
  const space: FreeSpace = { usable: 0, pieces: 0, largest: 0, otherClass: 0, otherStream: 0, otherPool: 0 };
  for (const segment of segments) {
    if (segment.pool !== pool) space.otherPool += segment.free;
    else if (segment.stream !== stream) space.otherStream += segment.free;
    else if (segment.isSmall !== isSmall) space.otherClass += segment.free;
    else {
      for (const piece of segment.pieces) {
        if (piece.life >= 0) continue;
        space.usable += piece.size;
        space.pieces += 1;
        space.largest = Math.max(space.largest, piece.size);
      }
    }
  }
  return space;
}

/** What the driver was asked for, by the request that needed it. */
export interface DriverRequest {
  event: number;
  size: number; // asked of the driver
  wanted: number; // of the request; 0 where the recording does not tell
  life: number; // the request's; -1: it failed or is unknown
  stream: number;
  pool: number;
  isRefused: boolean;
}

const SMALL = 2 ** 20;

export function driverRequests(recording: Recording): DriverRequest[] {
  const { driver, lives, kinds, header } = recording;
  const requests: DriverRequest[] = [];
  let life = 0;
  for (let i = 0; i < driver.count; i++) {
    const event = driver.event[i];
    if (event < 0 || !driver.gain[i]) continue;
    while (life < lives.count && lives.begin[life] < event) life++;
    const isServed = life < lives.count;
    requests.push({
      event,
      size: driver.size[i],
      wanted: isServed ? kinds.size[lives.kind[life]] : 0,
      life: isServed ? life : -1,
      stream: driver.stream[i],
      pool: driver.pool[i],
      isRefused: false,
    });
  }
  for (const failure of header.failures) {
    requests.push({ event: failure.event, size: failure.size, wanted: failure.size, life: -1, stream: failure.stream, pool: failure.pool, isRefused: true });
  }
  return requests.sort((a, b) => a.event - b.event);
}

export function isSmallRequest(size: number): boolean {
  return size <= SMALL;
}

/** Live right after the event. */
export function liveAt(recording: Recording, event: number): Uint32Array {
  const { lives } = recording;
  const found: number[] = [];
  for (let life = 0; life < lives.count && lives.begin[life] <= event; life++) {
    if (lives.freeCompleted[life] === NEVER || lives.freeCompleted[life] > event) found.push(life);
  }
  return Uint32Array.from(found);
}
