// What every page uses: the REST client, small stores, times and numbers as text.

import { useEffect, useRef, useState } from "../vendor/preact.js";

export * from "../vendor/preact.js";

// -- A value that components follow

export function store(first) {
  const listeners = new Set();
  const self = {
    value: first,
    set(next) {
      self.value = typeof next === "function" ? next(self.value) : next;
      for (const listener of [...listeners]) listener(self.value);
    },
    on(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return self;
}

export function useStore(one) {
  const [value, set] = useState(one.value);
  useEffect(() => {
    set(one.value);
    return one.on(set);
  }, [one]);
  return value;
}

// -- Where we are: the address of the page, and what is in its query

function place() {
  const query = Object.fromEntries(new URLSearchParams(location.search));
  if (Number.isNaN(Date.parse(query.as_of))) delete query.as_of; // an address that someone typed
  return { path: location.pathname, query };
}

export const route = store(place());
window.addEventListener("popstate", () => route.set(place()));

export function address(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

const CARRIED = ["as_of"];

// The moment of the time machine stays in the address from page to page.
export function go(path, query, { replace = false } = {}) {
  const url = new URL(path, location.origin);
  const merged = { ...Object.fromEntries(url.searchParams), ...query };
  for (const name of CARRIED) {
    if (!(name in merged) && route.value.query[name]) merged[name] = route.value.query[name];
  }
  const next = address(url.pathname, merged);
  if (replace) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  route.set(place());
}

export function setQuery(changes, options) {
  go(route.value.path, { ...route.value.query, ...changes }, options);
}

// -- Requests

export const session = store(null);
export const requests = store([]);
const MOST_REQUESTS = 20;

export class Problem extends Error {
  constructor(status, body) {
    super(body?.detail ?? body?.title ?? "The server does not answer.");
    this.status = status;
    this.hint = body?.hint ?? "";
    this.code = body?.code ?? "";
  }
}

export function may(permission) {
  return session.value?.permissions.includes(permission) ?? false;
}

// Whether this login is limited to no scopes or domains: what is about the whole store or its machine needs that.
export function seesAll() {
  return !(session.value?.scopes ?? []).length && !(session.value?.domains ?? []).length;
}

export function toLogin() {
  location.assign(address("/login", { next: location.pathname + location.search }));
}

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function urlOf(path, args = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(args)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one);
  }
  const text = query.toString();
  return `/api/v1${path}${text ? `?${text}` : ""}`;
}

async function once(method, path, args, signal) {
  const inQuery = method === "GET" || method === "DELETE";
  const url = inQuery ? urlOf(path, args) : `/api/v1${path}`;
  const headers = { Accept: "application/json" };
  if (zone) headers["X-Vestige-Timezone"] = zone;
  if (method !== "GET" && session.value?.csrf) headers["X-CSRF-Token"] = session.value.csrf;
  let body;
  if (!inQuery) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(args ?? {});
  }
  let response;
  try {
    response = await fetch(url, { method, headers, body, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, null);
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error; // given up while the answer was read
    return null;
  });
  return { url, body, response, answer };
}

// Another tab has logged in since: with the same key the change goes on, with another one its reader decides.
async function loggedInAgain() {
  const { label } = session.value;
  const response = await fetch("/login/session");
  if (!response.ok) return;
  session.set(await response.json());
  if (session.value.label === label) return;
  throw new Problem(403, { detail: `This browser is logged in with the key “${session.value.label}” now. Nothing was changed.` });
}

export async function api(method, path, args, { signal, quiet = false } = {}) {
  let { url, body, response, answer } = await once(method, path, args, signal);
  for (let tries = 0; response.status === 429 && tries < 5; tries += 1) {
    const seconds = Number(response.headers.get("Retry-After") ?? 1);
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    ({ url, body, response, answer } = await once(method, path, args, signal));
  }
  if (response.status === 401) {
    toLogin();
    throw new Problem(401, answer);
  }
  if (answer?.code === "csrf") {
    await loggedInAgain();
    ({ url, body, response, answer } = await once(method, path, args, signal));
  }
  if (!quiet) {
    requests.set((all) => [{ method, url, body, status: response.status, answer }, ...all].slice(0, MOST_REQUESTS));
  }
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

export const get = (path, args, options) => api("GET", path, args, options);
export const post = (path, args, options) => api("POST", path, args, options);

// Loads with `load(signal)` when something of `on` changes; the old answer stays until the new one is here.
export function useData(load, on) {
  const [state, set] = useState({ data: null, error: null, loading: true });
  const [turn, again] = useState(0);
  const last = useRef(null);
  useEffect(() => {
    const stop = new AbortController();
    const key = JSON.stringify(on);
    const fresh = last.current !== key;
    last.current = key;
    set((old) => ({ data: fresh ? null : old.data, error: null, loading: true }));
    load(stop.signal).then(
      (data) => stop.signal.aborted || set({ data, error: null, loading: false }),
      (error) => error.name === "AbortError" || stop.signal.aborted || set({ data: null, error, loading: false }),
    );
    return () => stop.abort();
  }, [...on, turn]);
  return { ...state, reload: () => again((count) => count + 1) };
}

// -- Notices with undo

export const notices = store([]);
let noticeId = 0;
const NOTICE_MS = 12_000;

export function notify(text, { undo = null, kind = "done" } = {}) {
  const id = (noticeId += 1);
  notices.set((all) => [...all.slice(-2), { id, text, undo, kind }]);
  setTimeout(() => dismissNotice(id), NOTICE_MS);
}

export function dismissNotice(id) {
  notices.set((all) => all.filter((one) => one.id !== id));
}

// Runs a change, and says what happened; with `undo`, the notice offers to take it back.
export async function act(text, change, { undo = null, after = () => {} } = {}) {
  try {
    const answer = await change();
    const back = undo && (async () => {
      try {
        await undo(answer);
        notify("Undone.");
      } catch (error) {
        notify(failure(error), { kind: "failed" });
      }
      after();
    });
    notify(typeof text === "function" ? text(answer) : text, { undo: back });
    after(answer);
    return answer;
  } catch (error) {
    notify(failure(error), { kind: "failed" });
    return null;
  }
}

export function failure(error) {
  return [error.message, error.hint].filter(Boolean).join(" ");
}

// -- Text

const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const whole = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
const dayOnly = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3600], ["minute", 60]];

export function ago(text, now = Date.now()) {
  const seconds = (new Date(text).getTime() - now) / 1000;
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return relative.format(Math.round(seconds / size), unit);
  }
  return "now";
}

export const when = (text) => whole.format(new Date(text));
export const day = (text) => dayOnly.format(new Date(text));
export const longDay = (text) => weekday.format(new Date(text));
export const number = (value) => new Intl.NumberFormat("en-GB").format(value);
export const percent = (value, digits = 0) => `${(100 * value).toFixed(digits)}%`;
export const score = (value) => (value === null || value === undefined ? "–" : Number(value).toFixed(3));
export const many = (count, one, more = `${one}s`) => `${number(count)} ${count === 1 ? one : more}`;
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const words = (name) => name.replace(/[_-]+/g, " ").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB"];
  let size = count;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit ? size.toFixed(1) : size} ${units[unit]}`;
}

export function clip(text, most = 240) {
  const line = text.slice(0, most * 4).replace(/^#+ /gm, "").replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}
