// Live events: one WebSocket for the whole app, the feed of the latest events, and the toasts made of them.

import { html, session, store, useEffect, useRef, useState, useStore } from "./lib.js";

const MOST_EVENTS = 200;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30_000;
const LOGIN_ENDED = [1008, 4401];

export const feed = store([]);
export const link = store({ state: "connecting", version: "", heartbeat: null, missed: 0 });

let socket = null;
let wait = FIRST_WAIT_MS;
let timer = null;
let eventId = 0;

export function connect() {
  clearTimeout(timer);
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(`${scheme}//${location.host}/ws`);
  socket.addEventListener("message", (message) => hear(JSON.parse(message.data)));
  socket.addEventListener("close", (event) => {
    const ended = LOGIN_ENDED.includes(event.code);
    link.set((old) => ({ ...old, state: ended ? "ended" : "lost" }));
    if (ended || !session.value) return;
    timer = setTimeout(again, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  });
}

// A refused WebSocket does not say why; a login that has ended is not tried again.
async function again() {
  const answer = await fetch("/login/session").catch(() => null);
  if (answer?.status === 401) link.set((old) => ({ ...old, state: "ended" }));
  else connect();
}

// Another tab has logged in again.
session.on(() => link.value.state === "ended" && connect());

export function hear(event) {
  if (event.type === "Connected") {
    wait = FIRST_WAIT_MS;
    link.set((old) => ({ ...old, state: "live", version: event.data.version }));
    return;
  }
  if (event.type === "Heartbeat") {
    link.set((old) => ({ ...old, heartbeat: event.data }));
    return;
  }
  feed.set((all) => [{ ...event, id: (eventId += 1) }, ...all].slice(0, MOST_EVENTS));
}

const SOON_MS = 400;
const AWAY = ["lost", "ended"];

// Calls `react` soon after events of these types, or after a connection that was lost is back, which may have
// missed some; several at once call it once. What takes the server long is asked for again after `rest`
// milliseconds at the earliest.
export function useLive(types, react, rest = 0) {
  const last = useRef(eventId);
  const pending = useRef(null);
  const ran = useRef(-Infinity);
  const latest = useRef(react);
  latest.current = react;
  useEffect(() => {
    last.current = eventId;
    const soon = () => {
      clearTimeout(pending.current);
      pending.current = setTimeout(() => {
        ran.current = performance.now();
        latest.current();
      }, Math.max(SOON_MS, ran.current + rest - performance.now()));
    };
    const off = feed.on((all) => {
      const fresh = all.filter((one) => one.id > last.current);
      last.current = eventId;
      if (fresh.some((one) => types.includes(one.type))) soon();
    });
    let away = AWAY.includes(link.value.state);
    const offLink = link.on(({ state }) => {
      if (away && state === "live") soon();
      away = AWAY.includes(state);
    });
    return () => {
      clearTimeout(pending.current);
      off();
      offLink();
    };
  }, []);
}

// -- InsightToast

const THROTTLE_MS = 1500;
const MOST_TOASTS = 4;
const LEAST_MS = 200;
const DEFAULT_MS = 5500;

const count = (value, one) => `${value} ${one}${value === 1 ? "" : "s"}`;
const percent = (value) => `${Math.round(100 * value)}%`;
const joined = (...parts) => parts.filter(Boolean).join(" · ");
const short = (id) => String(id ?? "").slice(0, 8);

const TOASTS = {
  DreamCompleted: (data) => ({
    title: "Dream consolidated",
    ms: 7000,
    body: `${joined(
      `Replayed ${data.memories_replayed} ${data.memories_replayed === 1 ? "memory" : "memories"}`,
      data.connections_found ? count(data.connections_found, "new connection") : "",
      data.insights_generated ? count(data.insights_generated, "insight") : "",
    )} in ${(data.duration_ms / 1000).toFixed(1)}s`,
  }),
  ConsolidationCompleted: (data) => ({
    title: "Consolidation swept",
    ms: 6000,
    body: `${joined(
      `${data.nodes_processed} ${data.nodes_processed === 1 ? "memory" : "memories"}`,
      data.decay_applied ? `${data.decay_applied} decayed` : "",
      data.embeddings_generated ? count(data.embeddings_generated, "embedding") : "",
    )} in ${(data.duration_ms / 1000).toFixed(1)}s`,
  }),
  ConnectionDiscovered: (data) => ({
    title: "Bridge discovered",
    ms: 4500,
    body: `${data.connection_type} · weight ${Number(data.weight).toFixed(2)}`,
  }),
  MemoryPromoted: (data) => ({ title: "Promoted", ms: 4500, body: `retention ${percent(data.new_retention)}` }),
  MemoryDemoted: (data) => ({ title: "Demoted", ms: 4500, body: `retention ${percent(data.new_retention)}` }),
  MemorySuppressed: (data) => ({
    title: "Forgetting",
    ms: DEFAULT_MS,
    body: `suppression #${data.suppression_count} · Rac1 cascade ~${count(data.estimated_cascade, "neighbor")}`,
  }),
  MemoryUnsuppressed: (data) => ({
    title: "Recovered",
    ms: 5000,
    body: data.remaining_count ? `${count(data.remaining_count, "suppression")} left` : "fully restored",
  }),
  Rac1CascadeSwept: (data) => ({
    title: "Rac1 cascade",
    ms: 6000,
    body: joined(count(data.seeds, "seed"), `${count(data.neighbors_affected, "neighbor")} affected`),
  }),
  MemoryDeleted: (data) => ({ title: "Memory deleted", ms: 4000, body: short(data.id) }),
};

export const toasts = store([]);
let lastConnection = -Infinity;
let toastId = 0;

export function toastOf(event) {
  const make = TOASTS[event.type];
  return make ? { ms: DEFAULT_MS, ...make(event.data), type: event.type } : null;
}

export function show(event) {
  const toast = toastOf(event);
  if (!toast) return;
  if (event.type === "ConnectionDiscovered") {
    const now = performance.now();
    if (now - lastConnection < THROTTLE_MS) return;
    lastConnection = now;
  }
  toasts.set((all) => [...all, { ...toast, id: (toastId += 1) }].slice(-MOST_TOASTS));
}

export function dismiss(id) {
  toasts.set((all) => all.filter((one) => one.id !== id));
}

// The feed has the newest first; toasts appear in the order of the events.
let lastSeen = 0;
feed.on((all) => {
  const fresh = all.filter((one) => one.id > lastSeen).reverse();
  if (!fresh.length) return;
  lastSeen = fresh.at(-1).id;
  for (const event of fresh) show(event);
});

const PULSE = [
  { type: "DreamCompleted", data: { memories_replayed: 127, connections_found: 43, insights_generated: 5, duration_ms: 2400 } },
  { type: "ConnectionDiscovered", data: { connection_type: "semantic", weight: 0.87 } },
  { type: "MemorySuppressed", data: { suppression_count: 2, estimated_cascade: 8 } },
  { type: "ConsolidationCompleted", data: { nodes_processed: 892, decay_applied: 156, embeddings_generated: 48, duration_ms: 1100 } },
];
const PULSE_MS = 800;

export function previewPulse() {
  lastConnection = -Infinity;
  PULSE.forEach((event, number) => setTimeout(() => show(event), number * PULSE_MS));
}

function Toast({ toast }) {
  const [paused, setPaused] = useState(false);
  const state = useRef({ left: toast.ms, began: 0, timer: null });
  useEffect(() => {
    const self = state.current;
    if (paused) return undefined;
    self.began = performance.now();
    self.timer = setTimeout(() => dismiss(toast.id), self.left);
    return () => {
      clearTimeout(self.timer);
      self.left = Math.max(self.left - (performance.now() - self.began), LEAST_MS);
    };
  }, [paused]);
  const keyed = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    dismiss(toast.id);
  };
  const pause = () => setPaused(true);
  const resume = () => setPaused(false);
  return html`<button type="button" class=${`toast event-${toast.type} ${paused ? "paused" : ""}`} data-event=${toast.type}
      onClick=${() => dismiss(toast.id)} onKeyDown=${keyed} onMouseEnter=${pause} onMouseLeave=${resume}
      onFocus=${pause} onBlur=${resume}>
    <span class="toast-title">${toast.title}</span><span class="toast-body">${toast.body}</span>
    <span class="toast-bar" aria-hidden="true"><span style=${{ animationDuration: `${toast.ms}ms` }}></span></span>
  </button>`;
}

export function Toasts() {
  const all = useStore(toasts);
  return html`<div class="toasts" role="status" aria-live="polite" aria-label="Events">
    ${all.map((toast) => html`<${Toast} key=${toast.id} toast=${toast} />`)}</div>`;
}
