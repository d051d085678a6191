// Numbers as people read them, by the same rules as the program's (src/base/bytes_text.h), and the page's words.

const units: [number, string][] = [
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

/** "512 B", "20.00 MiB", "6.31 GiB": two decimals, the largest unit of which there is at least one. */
export function bytes(value: number): string {
  const size = Math.abs(value);
  for (const [unit, name] of units) {
    if (size >= unit) return `${value < 0 ? "-" : ""}${grouped((size / unit).toFixed(2))} ${name}`;
  }
  return `${value} B`;
}

/** "1,468,706". */
export function count(value: number): string {
  return grouped(String(value));
}

/** "1,468,706 B". */
export function exact(value: number): string {
  return `${count(value)} B`;
}

function grouped(digits: string): string {
  const [whole, rest] = digits.split(".");
  const text = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return rest === undefined ? text : `${text}.${rest}`;
}

export function hex(address: number): string {
  return `0x${address.toString(16)}`;
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${((100 * part) / whole).toFixed(1)} %` : "-";
}

/** The distance of marks on an axis up to `most`: 1, 2 or 5 of a power of ten of its unit. */
export function axisStep(most: number, marks: number): number {
  const unit = units.find(([size]) => most >= size)?.[0] ?? 1;
  const wanted = most / unit / marks;
  const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1e-3)));
  const factor = [1, 2, 5, 10].find((f) => power * f >= wanted) ?? 10;
  return power * factor * unit;
}

export function axisText(value: number, most: number): string {
  if (value === 0) return "0";
  const [unit, name] = units.find(([size]) => most >= size) ?? [1, "B"];
  return `${Math.round((value / unit) * 1000) / 1000} ${name}`;
}

let words: Record<string, string> = {};

export function setWords(all: Record<string, string>): void {
  words = all;
}

/** The sentence of a key, with {names} filled in. A key without a sentence is shown as it is. */
export function say(key: string, values: Record<string, string> = {}): string {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
