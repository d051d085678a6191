// The bytes that the program packed into the page, as typed arrays: docs/formats/report-page.md, "oomscope.view/1".

export const NEVER = 0x7fffffff;

export interface Peak {
  bytes: number;
  event: number | null;
}

export interface Header {
  schema: string;
  name: string;
  device: number;
  events: number;
  peak_allocated: Peak;
  peak_reserved: Peak;
  peak_requested: Peak;
  instant: { event: number | null; failed: boolean; request: number };
  capacity: { low: number; high: number; is_limit: boolean };
  floor: number;
  page_floor: number;
  packing: number;
  failures: { event: number; size: number; device_free: number; stack: number; stream: number; pool: number }[];
  steps_are_passes: boolean;
  curve_events: number[];
  curves: { conf: string; completed: boolean; peak_reserved: number; reserved: number[] }[];
  categories: { id: string; name: string; colour: string }[];
  reasons: string[];
  phases: string[];
  sites: [text: string, userCode: number][];
  frames: [name: string, file: string, line: number, isLibrary: number][];
  streams: number[];
  pools: [number, number][];
  site_layers: number[];
  site_colours: string[];
  columns: { name: string; count: number; coding: "varint" | "delta"; bytes: number }[];
}

/** begin is -1 for what was there before the first event; the frees are NEVER where the recording has none. */
export interface Lives {
  count: number;
  begin: Int32Array;
  freeRequested: Int32Array;
  freeCompleted: Int32Array;
  address: Float64Array;
  kind: Uint32Array;
}

export interface Kinds {
  count: number;
  stack: Uint32Array;
  site: Uint32Array;
  requested: Float64Array;
  size: Float64Array;
  stream: Uint32Array;
  pool: Uint32Array;
  category: Uint32Array;
  reason: Uint32Array;
}

export interface Driver {
  count: number;
  event: Int32Array;
  gain: Uint32Array;
  pages: Uint32Array;
  small: Uint32Array;
  address: Float64Array;
  size: Float64Array;
  stream: Uint32Array;
  pool: Uint32Array;
  stack: Uint32Array;
}

export interface Recording {
  header: Header;
  events: number;
  times: Float64Array | null;
  lives: Lives;
  kinds: Kinds;
  driver: Driver;
  nodes: { parent: Uint32Array; frame: Uint32Array };
  stackNode: Uint32Array;
  spans: { begin: Int32Array; step: Uint32Array; phase: Uint32Array };
  steps: { end: Int32Array; peak: Float64Array; peakEvent: Int32Array; left: Float64Array };
}

/** base64 text to what was packed: gzip undone by the browser itself. */
export async function unpack(text: string): Promise<Uint8Array> {
  const binary = atob(text);
  const packed = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) packed[i] = binary.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

type Numbers = Int32Array | Uint32Array | Float64Array;

/** Values beyond 2^31 take the slower way with floats. */
function readVarints(bytes: Uint8Array, at: number, into: Numbers, isDelta: boolean): number {
  let before = 0;
  for (let i = 0; i < into.length; i++) {
    let byte = bytes[at++];
    let value = byte & 0x7f;
    let shift = 7;
    while (byte >= 0x80) {
      byte = bytes[at++];
      value = shift < 28 ? value | ((byte & 0x7f) << shift) : value + (byte & 0x7f) * 2 ** shift;
      shift += 7;
    }
    if (isDelta) {
      before += value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      into[i] = before;
    } else {
      into[i] = value;
    }
  }
  return at;
}

export function decode(bytes: Uint8Array): Recording {
  const text = new TextDecoder();
  if (text.decode(bytes.subarray(0, 8)) !== "OOMVIEW1") throw new Error("unknown format");
  const length = new DataView(bytes.buffer, bytes.byteOffset + 8, 4).getUint32(0, true);
  const header = JSON.parse(text.decode(bytes.subarray(12, 12 + length))) as Header;
  const places = new Map<string, { at: number; count: number; isDelta: boolean }>();
  let at = 12 + length;
  for (const column of header.columns) {
    places.set(column.name, { at, count: column.count, isDelta: column.coding === "delta" });
    at += column.bytes;
  }
  function read<T extends Numbers>(name: string, make: new (count: number) => T): T {
    const place = places.get(name);
    if (!place) throw new Error(`no column ${name}`);
    const into = new make(place.count);
    readVarints(bytes, place.at, into, place.isDelta);
    return into;
  }
  const u32 = (name: string) => read(name, Uint32Array);
  const f64 = (name: string) => read(name, Float64Array);
  const i32 = (name: string) => read(name, Int32Array);

  const times = f64("time_us");
  const driverEvent = i32("driver.event");
  for (let i = 0; i < driverEvent.length; i++) driverEvent[i] -= 1;
  return {
    header,
    events: header.events,
    times: times.length > 0 ? times : null,
    lives: readLives(i32, u32, f64),
    kinds: {
      count: places.get("kind.stack")?.count ?? 0,
      stack: u32("kind.stack"),
      site: u32("kind.site"),
      requested: f64("kind.requested"),
      size: f64("kind.size"),
      stream: u32("kind.stream"),
      pool: u32("kind.pool"),
      category: u32("kind.category"),
      reason: u32("kind.reason"),
    },
    driver: {
      count: driverEvent.length,
      event: driverEvent,
      gain: u32("driver.gain"),
      pages: u32("driver.pages"),
      small: u32("driver.small"),
      address: timesPage(f64("driver.address")),
      size: f64("driver.size"),
      stream: u32("driver.stream"),
      pool: u32("driver.pool"),
      stack: u32("driver.stack"),
    },
    nodes: { parent: u32("node.parent"), frame: u32("node.frame") },
    stackNode: u32("stack.node"),
    spans: { begin: i32("span.begin"), step: u32("span.step"), phase: u32("span.phase") },
    steps: { end: i32("step.end"), peak: f64("step.peak"), peakEvent: i32("step.peak_event"), left: f64("step.left") },
  };
}

/** Addresses travel in units of 512 bytes. */
function timesPage(addresses: Float64Array): Float64Array {
  for (let i = 0; i < addresses.length; i++) addresses[i] *= 512;
  return addresses;
}

function readLives(
  i32: (name: string) => Int32Array,
  u32: (name: string) => Uint32Array,
  f64: (name: string) => Float64Array,
): Lives {
  const begin = i32("life.begin");
  const freeRequested = i32("life.free_requested");
  const freeCompleted = i32("life.free_completed");
  for (let i = 0; i < begin.length; i++) {
    const born = begin[i] - 1;
    begin[i] = born;
    const from = Math.max(born, 0);
    const requested = freeRequested[i] === 0 ? NEVER : from + freeRequested[i] - 1;
    freeRequested[i] = requested;
    const base = requested === NEVER ? from : requested;
    freeCompleted[i] = freeCompleted[i] === 0 ? NEVER : base + freeCompleted[i] - 1;
  }
  return {
    count: begin.length,
    begin,
    freeRequested,
    freeCompleted,
    address: timesPage(f64("life.address")),
    kind: u32("life.kind"),
  };
}
