// The live set of a moment as a call tree: widths are bytes, the outermost frame on top. The user's own frames stand
// out; frames of libraries are folded into one, unless all are wanted.

import { button, element, onWidth, showTip, hideTip, rows } from "./dom";
import type { Recording } from "./decode";
import { bytes, count, exact, percent, say } from "./format";

export interface TreeNode {
  name: string;
  place: string; // file:line
  isLibrary: boolean;
  bytes: number;
  blocks: number;
  children: Map<string, TreeNode>;
}

/** Folded: frames of libraries between two of the user's are one node. */
export function callTree(recording: Recording, live: Uint32Array, isFolded: boolean): TreeNode {
  const { lives, kinds, header, nodes, stackNode } = recording;
  const bytesOf = new Float64Array(stackNode.length);
  const blocksOf = new Float64Array(stackNode.length);
  for (const life of live) {
    const kind = lives.kind[life];
    bytesOf[kinds.stack[kind]] += kinds.size[kind];
    blocksOf[kinds.stack[kind]] += 1;
  }
  const root = node(say("root"), "", true);
  for (let stack = 0; stack < stackNode.length; stack++) {
    if (blocksOf[stack] === 0) continue;
    const path: number[] = [];
    for (let at = stackNode[stack]; at !== 0; at = nodes.parent[at]) path.push(nodes.frame[at]);
    add(root, bytesOf[stack], blocksOf[stack]);
    let here = root;
    let folded = 0;
    const fold = () => {
      if (folded > 0) here = child(here, "\u0000", say("folded"), "", true, bytesOf[stack], blocksOf[stack]);
      folded = 0;
    };
    for (const frame of path.reverse()) {
      const [name, file, line, isLibrary] = header.frames[frame];
      if (isFolded && isLibrary) {
        folded += 1;
        continue;
      }
      fold();
      const place = line > 0 ? `${file}:${line}` : file;
      here = child(here, `${frame}`, name, place, isLibrary === 1, bytesOf[stack], blocksOf[stack]);
    }
    fold();
    if (path.length === 0) child(here, "\u0001", say("no-stack"), "", true, bytesOf[stack], blocksOf[stack]);
  }
  return root;
}

function node(name: string, place: string, isLibrary: boolean): TreeNode {
  return { name, place, isLibrary, bytes: 0, blocks: 0, children: new Map() };
}

function add(to: TreeNode, size: number, blocks: number): void {
  to.bytes += size;
  to.blocks += blocks;
}

function child(of: TreeNode, key: string, name: string, place: string, isLibrary: boolean, size: number, blocks: number): TreeNode {
  let found = of.children.get(key);
  if (!found) of.children.set(key, (found = node(name, place, isLibrary)));
  add(found, size, blocks);
  return found;
}

/** Names that stand for more than one place: they do not tell which. */
export function sharedNames(root: TreeNode): Set<string> {
  const placeOf = new Map<string, string>();
  const shared = new Set<string>();
  const visit = ({ name, place, children }: TreeNode) => {
    if (place !== "" && (placeOf.get(name) ?? place) !== place) shared.add(name);
    if (place !== "") placeOf.set(name, place);
    children.forEach(visit);
  };
  visit(root);
  return shared;
}

const ROW = 20;
const NARROWEST = 3; // pixels

export class Flame {
  readonly root = element("div");
  private readonly chart = element("div", { class: "flame", role: "tree", "aria-label": say("flame-name") });
  private readonly found = element("span", { class: "dim", "aria-live": "polite" });
  private tree: TreeNode | null = null;
  private shared = new Set<string>();
  private path: TreeNode[] = []; // from the root to the node that fills the width
  private isFolded = true;
  private wanted = "";
  private live: Uint32Array = new Uint32Array(0);

  constructor(private readonly recording: Recording) {
    const all = element("input", { type: "checkbox" });
    all.addEventListener("change", () => {
      this.isFolded = !all.checked;
      this.show(this.live);
    });
    const search = element("input", { type: "search", placeholder: say("search"), "aria-label": say("search") });
    search.addEventListener("input", () => {
      this.wanted = search.value.toLowerCase();
      this.draw();
    });
    const tools = element("div", { class: "tools" });
    tools.append(search, element("label", {}, all, " ", say("framework")), this.found);
    this.root.append(tools, this.chart);
    this.chart.addEventListener("keydown", (event) => this.onKey(event));
    onWidth(this.root, () => this.draw());
  }

  /** Arrows go to the frame above or below, and along a row; only one box of the chart is in the order of Tab. */
  private onKey(event: KeyboardEvent): void {
    const from = document.activeElement as HTMLElement | null;
    if (!from || !this.chart.contains(from)) return;
    const middle = (box: HTMLElement) => box.offsetLeft + box.offsetWidth / 2;
    const rows = { ArrowUp: -ROW, ArrowDown: ROW, ArrowLeft: 0, ArrowRight: 0 }[event.key];
    if (rows === undefined) return;
    event.preventDefault();
    const side = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0;
    const candidates = [...this.chart.children].filter((box): box is HTMLElement => {
      if (!(box instanceof HTMLElement) || box === from || box.offsetTop !== from.offsetTop + rows) return false;
      return side === 0 || Math.sign(middle(box) - middle(from)) === side;
    });
    candidates.sort((a, b) => Math.abs(middle(a) - middle(from)) - Math.abs(middle(b) - middle(from)));
    if (candidates.length === 0) return;
    from.tabIndex = -1;
    candidates[0].tabIndex = 0;
    candidates[0].focus();
  }

  show(live: Uint32Array): void {
    this.live = live;
    this.tree = callTree(this.recording, live, this.isFolded);
    this.shared = sharedNames(this.tree);
    this.path = [this.tree];
    this.draw();
  }

  private draw(): void {
    const width = this.root.clientWidth;
    if (!this.tree || width === 0) return;
    const made: HTMLElement[] = [];
    const focus = this.path[this.path.length - 1];
    let deepest = 0;
    let matching = 0;
    this.path.slice(0, -1).forEach((each, depth) => made.push(this.box(each, this.path.slice(0, depth + 1), 0, width, depth)));
    const visit = (each: TreeNode, path: TreeNode[], left: number, right: number, isInside: boolean) => {
      const depth = path.length - 1;
      deepest = Math.max(deepest, depth);
      const matches = this.wanted !== "" && `${each.name} ${each.place}`.toLowerCase().includes(this.wanted);
      if (matches && !isInside) matching += each.bytes;
      if (right - left >= NARROWEST) made.push(this.box(each, path, left, right, depth, matches));
      let x = left;
      const children = [...each.children.values()].sort((a, b) => b.bytes - a.bytes);
      for (const below of children) {
        const end = x + ((right - left) * below.bytes) / each.bytes;
        if (end - x >= NARROWEST || this.wanted !== "") visit(below, [...path, below], x, end, isInside || matches);
        x = end;
      }
    };
    visit(focus, this.path, 0, width, false);
    this.found.textContent = this.wanted === "" ? "" : say("matching", { bytes: bytes(matching) });
    this.chart.style.height = `${(deepest + 1) * ROW}px`;
    made.forEach((box, i) => (box.tabIndex = i === 0 ? 0 : -1));
    this.chart.replaceChildren(...made);
  }

  private box(each: TreeNode, path: TreeNode[], left: number, right: number, depth: number, isFound = false): HTMLElement {
    const made = button(each.name, () => {
      this.path = path;
      this.draw();
    });
    const total = this.tree!.bytes;
    if (this.shared.has(each.name)) made.append(element("span", {}, ` ${each.place.split("/").pop()}`));
    made.className = isFound ? "found" : each.isLibrary ? "library" : "";
    made.setAttribute("role", "treeitem");
    made.setAttribute("aria-level", String(depth + 1));
    made.setAttribute("aria-label", `${each.name} ${each.place}`.trim() + `, ${bytes(each.bytes)}, ${percent(each.bytes, total)}`);
    made.style.cssText = `left:${left}px;width:${Math.max(right - left - 1, 1)}px;top:${depth * ROW}px`;
    made.addEventListener("pointermove", (event) =>
      showTip(
        event.clientX,
        event.clientY,
        element("div", { class: "strong" }, each.name),
        each.place,
        rows([
          [say("active"), exact(each.bytes)],
          ["", percent(each.bytes, total)],
          ["", count(each.blocks)],
        ]),
      ),
    );
    made.addEventListener("pointerleave", hideTip);
    return made;
  }
}
