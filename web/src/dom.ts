// Elements. Text from the recording is only ever set as text, so that nothing in it can become markup.

type Attributes = Record<string, string | number | boolean | undefined>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
}

export interface Choice<T> {
  root: HTMLElement;
  show(chosen: T): void;
}

/** One of several: buttons of which one is pressed. What is chosen is its owner's to keep, and to show. */
export function choice<T extends string>(label: string, entries: [T, string][], onClick: (value: T) => void): Choice<T> {
  const group = element("span", { role: "group", "aria-label": label });
  const buttons = entries.map(([value, text]) => button(text, () => onClick(value)));
  group.append(...buttons);
  return {
    root: element("div", { class: "choice" }, label, group),
    show: (chosen) => buttons.forEach((each, i) => each.setAttribute("aria-pressed", String(entries[i][0] === chosen))),
  };
}

export function button(text: string, onClick: () => void): HTMLButtonElement {
  const made = element("button", { type: "button" }, text);
  made.addEventListener("click", onClick);
  return made;
}

/** A canvas that fills its box, in device pixels. */
export function fit(canvas: HTMLCanvasElement): { context: CanvasRenderingContext2D; width: number; height: number; scale: number } {
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const wide = Math.max(1, Math.round(width * scale));
  const high = Math.max(1, Math.round(height * scale));
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height, scale };
}

/** Calls back when the element becomes wider or narrower; its height may follow from what is drawn. */
export function onWidth(of: HTMLElement, draw: () => void): void {
  let width = -1;
  new ResizeObserver(() => {
    if (of.clientWidth === width) return;
    width = of.clientWidth;
    draw();
  }).observe(of);
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const tip = element("div", { class: "tip", role: "tooltip", hidden: true });

export function showTip(x: number, y: number, ...content: (Node | string)[]): void {
  if (!tip.isConnected) document.body.append(tip);
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 12, innerHeight - box.height - 8))}px`;
}

export function hideTip(): void {
  tip.hidden = true;
}

/** Rows of name and value. */
export function rows(entries: [string, string, string?][]): HTMLElement {
  const body = element("tbody");
  for (const [name, value, mark] of entries) {
    const cell = element("td");
    if (mark) {
      const key = element("b", { class: "key" });
      key.style.background = mark;
      cell.append(key);
    }
    cell.append(name);
    body.append(element("tr", {}, cell, element("td", { class: "number" }, value)));
  }
  return element("table", {}, body);
}
