// The segments of one pool as rows of blocks and free space, by pointer and by keyboard: a canvas has no elements to
// focus, so one button lies over the block that the keys have come to and carries its name.

import type { Recording } from "./decode";
import { colour, element, fit, hideTip, rows, showTip } from "./dom";
import { bytes, count, exact, hex, say } from "./format";
import type { Piece, Segment } from "./segments";

const MOST_SEGMENTS = 48;
const MOST_FRAMES = 8;
const ROW = 15;
const LABEL = 150;

export class SegmentMap {
  readonly root = element("div", { class: "pool" });
  private readonly canvas = element("canvas", { "aria-hidden": "true" });
  private readonly map: HTMLElement;
  private readonly shown: Segment[];
  private readonly largest: number;
  private row = 0;
  private column = 0; // the piece of that segment

  /** Segments that live blocks pin most come first: free bytes that nobody can give back. */
  constructor(
    private readonly recording: Recording,
    private readonly event: number,
    name: string,
    segments: Segment[],
  ) {
    const harm = (segment: Segment) => (segment.free < segment.size ? segment.free : 0);
    segments.sort((a, b) => harm(b) - harm(a) || b.size - a.size);
    this.shown = segments.slice(0, MOST_SEGMENTS);
    this.largest = segments.reduce((most, each) => Math.max(most, each.size), 1);
    const sum = (of: (segment: Segment) => number) => segments.reduce((total, each) => total + of(each), 0);
    const line = say("segment-line", {
      free: bytes(sum((each) => each.free)),
      size: bytes(sum((each) => each.size)),
      count: count(segments.length),
      pinned: bytes(sum(harm)),
    });
    this.map = element("div", { class: "map", role: "group", "aria-label": `${name}. ${say("map-name")}` }, this.canvas);
    this.canvas.style.height = `${this.shown.length * ROW}px`;
    this.canvas.addEventListener("pointermove", (event) => this.onPointer(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.map.addEventListener("keydown", (event) => this.onKey(event));
    this.root.append(element("h3", {}, name), element("p", { class: "dim" }, line), this.map);
    const rest = segments.length - this.shown.length;
    if (rest > 0) this.root.append(element("p", { class: "dim" }, `+ ${count(rest)}`));
  }

  /** Once it stands in the page, and has a width. */
  draw(): void {
    const { context, width } = fit(this.canvas);
    context.font = "11px system-ui, sans-serif";
    this.shown.forEach((segment, row) => {
      const top = row * ROW;
      context.fillStyle = colour("--soft");
      context.textAlign = "right";
      context.fillText(`${bytes(segment.free)} / ${bytes(segment.size)}`, LABEL - 8, top + 11);
      context.fillStyle = colour("--rule");
      context.fillRect(LABEL, top + 1, Math.max((segment.size / this.largest) * (width - LABEL), 1), ROW - 3);
      for (const piece of segment.pieces) if (piece.life >= 0) this.paint(context, piece, segment, top);
    });
    this.placeCursor();
  }

  private paint(context: CanvasRenderingContext2D, piece: Piece, segment: Segment, top: number): void {
    const { lives, kinds, header } = this.recording;
    const { left, wide } = this.extent(piece, segment);
    context.fillStyle = header.categories[kinds.category[lives.kind[piece.life]]].colour;
    context.globalAlpha = this.isPending(piece) ? 0.5 : 1;
    context.fillRect(left, top + 1, Math.max(wide - (wide > 4 ? 0.5 : 0), 0.5), ROW - 3);
    context.globalAlpha = 1;
  }

  private extent(piece: Piece, segment: Segment): { left: number; wide: number } {
    const scale = (this.canvas.clientWidth - LABEL) / this.largest;
    return { left: LABEL + (piece.address - segment.address) * scale, wide: piece.size * scale };
  }

  private isPending(piece: Piece): boolean {
    return piece.life >= 0 && this.recording.lives.freeRequested[piece.life] <= this.event;
  }

  // ---- pointer and keys

  private onPointer(event: PointerEvent): void {
    const box = this.canvas.getBoundingClientRect();
    const segment = this.shown[Math.floor((event.clientY - box.top) / ROW)];
    if (!segment) return hideTip();
    const address = segment.address + ((event.clientX - box.left - LABEL) / (box.width - LABEL)) * this.largest;
    const piece = segment.pieces.find((each) => address >= each.address && address < each.address + each.size);
    showTip(event.clientX, event.clientY, ...(piece ? this.tip(piece, segment) : [aboutSegment(segment)]));
  }

  private onKey(event: KeyboardEvent): void {
    const pieces = this.shown[this.row].pieces;
    const moves: Record<string, [row: number, column: number]> = {
      ArrowLeft: [this.row, Math.max(this.column - 1, 0)],
      ArrowRight: [this.row, Math.min(this.column + 1, pieces.length - 1)],
      Home: [this.row, 0],
      End: [this.row, pieces.length - 1],
      ArrowUp: this.beside(Math.max(this.row - 1, 0)),
      ArrowDown: this.beside(Math.min(this.row + 1, this.shown.length - 1)),
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    [this.row, this.column] = move;
    this.placeCursor().focus();
  }

  /** The piece of another segment that begins nearest below, as far from its own begin. */
  private beside(row: number): [number, number] {
    if (row === this.row) return [row, this.column];
    const from = this.shown[this.row];
    const { address, pieces } = this.shown[row];
    const at = address + from.pieces[this.column].address - from.address;
    const next = pieces.findIndex((each) => each.address + each.size > at);
    return [row, next < 0 ? pieces.length - 1 : next];
  }

  /** A new button each time, so that a screen reader says its name. */
  private placeCursor(): HTMLElement {
    const segment = this.shown[this.row];
    const piece = segment.pieces[this.column];
    const cursor = element("button", { type: "button", "aria-label": this.describe(piece, segment) });
    const { left, wide } = this.extent(piece, segment);
    cursor.style.cssText = `left:${left}px;top:${this.row * ROW}px;width:${Math.max(wide, 2)}px;height:${ROW - 1}px`;
    cursor.addEventListener("focus", () => {
      const box = cursor.getBoundingClientRect();
      if (cursor.matches(":focus-visible")) showTip(box.left, box.bottom, ...this.tip(piece, segment));
    });
    cursor.addEventListener("blur", hideTip);
    this.map.replaceChildren(this.canvas, cursor);
    return cursor;
  }

  // ---- what a piece is

  private aboutPiece(piece: Piece): string {
    if (piece.life < 0) return say("free-tip", { size: exact(piece.size), address: hex(piece.address) });
    const { lives, kinds, header } = this.recording;
    const born = lives.begin[piece.life];
    return say("block-tip", {
      size: exact(piece.size),
      address: hex(piece.address),
      site: siteOf(this.recording, piece.life),
      category: header.categories[kinds.category[lives.kind[piece.life]]].name,
      event: born < 0 ? say("start") : count(born),
      age: count(this.event - Math.max(born, 0)),
    });
  }

  private tip(piece: Piece, segment: Segment): Node[] {
    const parts: Node[] = [element("div", {}, this.aboutPiece(piece)), element("div", { class: "dim" }, aboutSegment(segment))];
    if (piece.life >= 0) parts.push(rows(this.stackOf(piece.life)));
    if (this.isPending(piece)) parts.unshift(element("div", { class: "warn" }, say("pending-tip")));
    return parts;
  }

  /** The tip as one name. */
  private describe(piece: Piece, segment: Segment): string {
    const stack = piece.life < 0 ? [] : this.stackOf(piece.life).map((frame) => frame.join(" "));
    const pending = this.isPending(piece) ? [say("pending-tip")] : [];
    return [...pending, this.aboutPiece(piece), ...stack, aboutSegment(segment)].join("; ");
  }

  /** The innermost frames of a block's stack: name and place. */
  private stackOf(life: number): [string, string][] {
    const { lives, kinds, header, nodes, stackNode } = this.recording;
    const lines: [string, string][] = [];
    let node = stackNode[kinds.stack[lives.kind[life]]];
    for (; node !== 0 && lines.length < MOST_FRAMES; node = nodes.parent[node]) {
      const [name, file, line] = header.frames[nodes.frame[node]];
      lines.push([name, line > 0 ? `${file.split("/").pop()}:${line}` : ""]);
    }
    return lines;
  }
}

function aboutSegment(segment: Segment): string {
  return say("segment-tip", { address: hex(segment.address), size: bytes(segment.size), free: exact(segment.free) });
}

export function siteOf({ lives, kinds, header }: Recording, life: number): string {
  return header.sites[kinds.site[lives.kind[life]]][0] || say("no-frames");
}
