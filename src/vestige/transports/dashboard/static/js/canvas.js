// Draws the map on a canvas: islands from afar, memories from nearer, labels from close by.

import { clip, go, html, number, useLayoutEffect, useRef } from "./lib.js";
import { topicName, TYPES } from "./ui.js";

const FIRST_DOTS = 0.6;
const MOST_LABELS = 60; // more memories in view than that are dots without words
const FULL = 1500; // square pixels for each memory in view from which dots are as large as they get
const NAME_ROOM = 28_000; // square pixels of the canvas for each name of an island
const DOT = 6;
const HIT_PIXELS = 14;
const NARROW = 480;
const MARGIN = 18;
const LINE = 17;

function colours(element) {
  const style = getComputedStyle(element);
  const one = (name) => style.getPropertyValue(name).trim();
  return { text: one("--text"), muted: one("--muted"), line: one("--line"), accent: one("--accent"), surface: one("--surface"), types: Object.fromEntries([...Object.keys(TYPES), "other"].map((type) => [type, one(`--type-${type}`)])) };
}

class View {
  constructor(canvas, { islands, nodes }) {
    this.canvas = canvas;
    this.islands = islands;
    this.bySize = [...islands].sort((a, b) => b.memories - a.memories);
    this.links = [];
    this.nodes = nodes;
    this.chosen = null;
    this.frame = null;
    const round = [...islands, ...nodes.map((one) => ({ x: one.x, y: one.y, radius: 0 }))];
    const [left, top] = [Math.min(...round.map((one) => one.x - one.radius)), Math.min(...round.map((one) => one.y - one.radius))];
    const [right, bottom] = [Math.max(...round.map((one) => one.x + one.radius)), Math.max(...round.map((one) => one.y + one.radius))];
    this.extent = [Math.max(1, right - left), Math.max(1, bottom - top)];
    this.centre = [(left + right) / 2, (top + bottom) / 2];
    this.zoom = 1;
    this.paint = null;
    this.measure();
  }

  // Asking the page for the size of the canvas is slow, so it is asked once for each change.
  measure() {
    [this.width, this.height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    // All of it fills the canvas, with room for the names above the islands.
    const fit = Math.min((this.width - 2 * MARGIN) / this.extent[0], (this.height - 3 * MARGIN) / this.extent[1]);
    this.scale = this.zoom * Math.max(fit, 1e-6);
  }

  zoomBy(factor) {
    this.zoom = Math.max(0.3, Math.min(30, this.zoom * factor));
    this.measure();
  }

  toScreen(x, y) {
    return [(x - this.centre[0]) * this.scale + this.width / 2, (y - this.centre[1]) * this.scale + this.height / 2];
  }

  toMap(x, y) {
    return [(x - this.width / 2) / this.scale + this.centre[0], (y - this.height / 2) / this.scale + this.centre[1]];
  }

  request() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { canvas } = this;
    this.measure();
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const paint = (this.paint ??= colours(canvas));
    this.drawIslands(pen, paint);
    if (this.chosen) this.drawLinks(pen, paint);
    const seen = this.nodes.filter((one) => this.inView(one));
    if (this.zoom >= FIRST_DOTS) this.drawDots(pen, paint, seen);
    const named = this.drawNames(pen, paint);
    if (seen.length <= MOST_LABELS) this.drawLabels(pen, paint, seen, named);
    if (this.chosen) this.drawChosen(pen, paint);
  }

  inView(node) {
    const [x, y] = this.toScreen(node.x, node.y);
    return x > -9 && y > -9 && x < this.width + 9 && y < this.height + 9;
  }

  drawIslands(pen, paint) {
    for (const island of this.islands) {
      const [x, y] = this.toScreen(island.x, island.y);
      pen.beginPath();
      pen.arc(x, y, island.radius * this.scale, 0, 2 * Math.PI);
      pen.fillStyle = paint.accent;
      pen.globalAlpha = 0.06;
      pen.fill();
      pen.globalAlpha = 0.35;
      pen.strokeStyle = paint.line;
      pen.stroke();
      pen.globalAlpha = 1;
    }
  }

  // Over the dots, the largest first; a name that would cover another one is left out.
  drawNames(pen, paint) {
    pen.textAlign = "center";
    pen.font = `600 ${this.width < NARROW ? 11 : 13}px system-ui, sans-serif`;
    pen.lineWidth = 4;
    pen.strokeStyle = paint.surface;
    pen.fillStyle = paint.text;
    const taken = [];
    const most = Math.max(4, (this.width * this.height) / NAME_ROOM);
    for (const island of this.bySize) {
      if (taken.length >= most) break;
      const [x, top] = this.toScreen(island.x, island.y - island.radius);
      const text = `${clip(topicName(island), 40)} · ${number(island.memories)}`;
      const half = pen.measureText(text).width / 2;
      const y = Math.max(16, top - 6);
      const at = Math.max(half + 4, Math.min(this.width - half - 4, x));
      if (x < -half || x > this.width + half || y > this.height || top < -2 * island.radius * this.scale) continue;
      if (taken.some((one) => Math.abs(one.at - at) < one.half + half + 6 && Math.abs(one.y - y) < LINE)) continue;
      taken.push({ at, y, half });
      pen.strokeText(text, at, y);
      pen.fillText(text, at, y);
    }
    pen.lineWidth = 1;
    return taken;
  }

  // The more of them, the smaller and the fainter, so that many dots in one place look like many.
  drawDots(pen, paint, seen) {
    const room = Math.min(1, Math.sqrt((this.width * this.height) / (FULL * Math.max(1, seen.length))));
    const grow = 0.75 + 1.05 * room;
    for (const type of [...Object.keys(TYPES), "other"]) {
      pen.fillStyle = paint.types[type];
      pen.beginPath();
      for (const node of seen) {
        if ((node.type in TYPES ? node.type : "other") !== type) continue;
        const [x, y] = this.toScreen(node.x, node.y);
        const radius = grow * (1.6 + 2.6 * node.retention);
        pen.moveTo(x + radius, y);
        pen.arc(x, y, radius, 0, 2 * Math.PI);
      }
      pen.globalAlpha = 0.5 + 0.4 * room;
      pen.fill();
      pen.globalAlpha = 1;
    }
  }

  // The best remembered first; what would cover another label or a dot is left out.
  drawLabels(pen, paint, seen, named) {
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = "left";
    const taken = [...named.map(({ at, y, half }) => [at - half, y, 2 * half]), ...seen.map((one) => this.toScreen(one.x, one.y)).map(([x, y]) => [x - DOT, y, 2 * DOT])];
    pen.lineWidth = 3;
    pen.strokeStyle = paint.surface;
    pen.fillStyle = paint.muted;
    for (const node of [...seen].sort((a, b) => b.retention - a.retention)) {
      const [x, y] = this.toScreen(node.x, node.y);
      const text = clip(node.label, 34);
      const { width } = pen.measureText(text);
      const free = (left) => left >= 2 && left + width <= this.width - 2 && !taken.some(([a, b, wide]) => left < a + wide && a < left + width && Math.abs(b - y) < LINE - 3);
      const left = [x + 9, x - 9 - width].find(free);
      if (left === undefined) continue;
      taken.push([left, y, width]);
      pen.strokeText(text, left, y + 4);
      pen.fillText(text, left, y + 4);
    }
    pen.lineWidth = 1;
  }

  // The links of the chosen memory to others on the map, the stronger the thicker.
  drawLinks(pen, paint) {
    const [x, y] = this.toScreen(this.chosen.x, this.chosen.y);
    pen.strokeStyle = paint.accent;
    pen.globalAlpha = 0.7;
    for (const { node, weight } of this.links) {
      pen.beginPath();
      pen.lineWidth = 0.8 + 2 * weight;
      pen.moveTo(x, y);
      pen.lineTo(...this.toScreen(node.x, node.y));
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.lineWidth = 1;
  }

  drawChosen(pen, paint) {
    const [x, y] = this.toScreen(this.chosen.x, this.chosen.y);
    pen.beginPath();
    pen.arc(x, y, 11, 0, 2 * Math.PI);
    pen.lineWidth = 2;
    pen.strokeStyle = paint.accent;
    pen.stroke();
    pen.lineWidth = 1;
  }

  at(x, y) {
    let best = null;
    let least = HIT_PIXELS;
    for (const node of this.nodes) {
      const [a, b] = this.toScreen(node.x, node.y);
      const far = Math.hypot(a - x, b - y);
      if (far < least) [best, least] = [node, far];
    }
    return best;
  }

  // The nearest memory in a direction.
  next(key) {
    if (!this.chosen) return this.nodes[0];
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[key];
    let best = this.chosen;
    let least = Infinity;
    for (const node of this.nodes) {
      const [dx, dy] = [node.x - this.chosen.x, node.y - this.chosen.y];
      const along = dx * way[0] + dy * way[1];
      const aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
      if (along <= 1e-9) continue;
      const far = along + 2 * aside;
      if (far < least) [best, least] = [node, far];
    }
    return best;
  }
}

export function Canvas({ islands, nodes, chosen, links, onChoose }) {
  const canvas = useRef(null);
  const view = useRef(null);
  const choose = useRef(onChoose);
  choose.current = onChoose;
  // Before the page is painted: a key may be pressed as soon as the map is there.
  useLayoutEffect(() => {
    const element = canvas.current;
    const self = new View(element, { islands, nodes });
    view.current = self;
    let drag = null;
    const zoom = (event) => {
      event.preventDefault();
      const before = self.toMap(event.offsetX, event.offsetY);
      self.zoomBy(Math.exp(-event.deltaY / 400));
      const after = self.toMap(event.offsetX, event.offsetY);
      self.centre = [self.centre[0] + before[0] - after[0], self.centre[1] + before[1] - after[1]];
      self.request();
    };
    const down = (event) => {
      drag = { x: event.offsetX, y: event.offsetY, moved: false };
      element.setPointerCapture(event.pointerId);
    };
    const move = (event) => {
      if (!drag) return;
      const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
      if (Math.hypot(dx, dy) < 3 && !drag.moved) return;
      drag = { x: event.offsetX, y: event.offsetY, moved: true };
      self.centre = [self.centre[0] - dx / self.scale, self.centre[1] - dy / self.scale];
      self.request();
    };
    const up = (event) => {
      if (drag && !drag.moved) choose.current(self.at(event.offsetX, event.offsetY));
      drag = null;
    };
    const listeners = { wheel: zoom, pointerdown: down, pointermove: move, pointerup: up };
    for (const [name, listener] of Object.entries(listeners)) element.addEventListener(name, listener, { passive: false });
    const watch = new ResizeObserver(() => self.request());
    watch.observe(element);
    const themed = new MutationObserver(() => {
      self.paint = null;
      self.request();
    });
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    self.request();
    return () => {
      for (const [name, listener] of Object.entries(listeners)) element.removeEventListener(name, listener);
      watch.disconnect();
      themed.disconnect();
      cancelAnimationFrame(self.frame);
    };
  }, [islands, nodes]);
  useLayoutEffect(() => {
    view.current.chosen = chosen;
    view.current.links = links;
    view.current.request();
  }, [chosen, links, nodes]);
  const keys = (event) => {
    if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = view.current.next(event.key);
      if (next) {
        view.current.centre = [next.x, next.y];
        onChoose(next);
      }
    } else if (event.key === "Enter" && chosen) go(`/memories/${chosen.id}`);
    else if (event.key === "+" || event.key === "-") {
      event.preventDefault();
      view.current.zoomBy(event.key === "+" ? 1.4 : 1 / 1.4);
      view.current.request();
    }
  };
  return html`<div class="map-box"><canvas ref=${canvas} tabindex="0" role="application" aria-label="Map of memories; arrow keys move" onKeyDown=${keys}></canvas>
    <p class="hidden" role="status" aria-live="polite">${chosen ? clip(chosen.label, 120) : ""}</p></div>`;
}
