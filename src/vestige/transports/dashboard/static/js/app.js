// The app: login, navigation, pages, command palette, keys.

import {
  address, ago, clip, dismissNotice, get, go, html, may, notices, notify, number, post, render, requests, route, session,
  setQuery, store, toLogin, useEffect, useErrorBoundary, useRef, useState, useStore, when,
} from "./lib.js";
import { connect, link, Toasts } from "./live.js";
import { Dialog, Failed } from "./ui.js";
import { NAV, pageOf } from "./pages.js";

const palette = store(false);
const help = store(false);
const json = store(false);
const menu = store(false);

async function logIn() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (ticket) {
    history.replaceState(null, "", location.pathname + location.search);
    const response = await fetch("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ticket }),
    });
    if (response.ok) return response.json();
    if (response.status === 401) {
      location.replace("/login?used=1");
      return null;
    }
  }
  const response = await fetch("/login/session", { headers: { Accept: "application/json" } });
  if (response.ok) return response.json();
  if (response.status === 401) {
    toLogin();
    return null;
  }
  throw new Error();
}

async function logOut() {
  await fetch("/logout", { method: "POST" });
  location.assign("/login");
}

// -- Theme

export function theme() {
  return document.documentElement.dataset.theme
    ?? (matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark");
}

export function toggleTheme() {
  const next = theme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("vestige-theme", next);
}

// -- Keys

const typing = (event) => event.target.closest?.("input, textarea, select, [contenteditable]");

function keyed(event) {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    palette.set((open) => !open);
    return;
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event) || document.querySelector("dialog[open]")) return;
  if (event.key === "/") {
    event.preventDefault();
    const field = document.querySelector("main input[type=search]") ?? document.getElementById("quick");
    field?.focus();
    return;
  }
  if (event.key === "?") {
    help.set(true);
    return;
  }
  const page = event.shiftKey ? null : NAV.find((one) => one.key === event.key.toLowerCase());
  if (page) {
    event.preventDefault();
    go(page.path);
  }
}

// -- Links stay in the app

function clicked(event) {
  const anchor = event.target.closest?.("a[href]");
  if (!anchor || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const href = anchor.getAttribute("href"); // `href` of a link in a drawing is no text
  if (href.startsWith("#")) return; // a place on this page
  const url = new URL(href, location.href);
  if (url.origin !== location.origin || "native" in anchor.dataset || !pageOf(url.pathname)) return;
  event.preventDefault();
  menu.set(false);
  go(url.pathname + url.search);
}

// -- Parts of the frame

function Navigation() {
  const here = useStore(route);
  const current = pageOf(here.path);
  const groups = [...new Set(NAV.map((one) => one.group))];
  return html`<nav class="nav" aria-label="Pages"><div class="nav-body">${groups.map((group) => html`<div class="nav-group">
    <p class="nav-title">${group}</p>
    <ul>${NAV.filter((one) => one.group === group).map((one) => html`<li><a href=${address(one.path, { as_of: here.query.as_of })}
      aria-current=${current?.nav === one ? "page" : null}><span>${one.title}</span><kbd aria-hidden="true">${one.key}</kbd></a></li>`)}</ul></div>`)}</div></nav>`;
}

function LiveState() {
  const now = useStore(link);
  const text = { live: "live", lost: "reconnecting", connecting: "connecting", ended: "logged out" }[now.state];
  const ended = now.state === "ended";
  return html`<a href=${ended ? address("/login", { next: location.pathname + location.search }) : "/feed"} class=${`connection ${now.state}`} title=${now.heartbeat && !ended ? `${number(now.heartbeat.memory_count)} memories` : text}>
    <span class="dot" aria-hidden="true"></span>${text}</a>`;
}

function Quick() {
  const submit = (event) => {
    event.preventDefault();
    const text = event.target.elements.q.value.trim();
    if (text) go("/search", { q: text });
  };
  return html`<form class="quick" role="search" onSubmit=${submit}>
    <input id="quick" name="q" type="text" autocomplete="off" placeholder="Search memories" aria-label="Search memories" /><kbd aria-hidden="true">/</kbd></form>`;
}

const DAY_MS = 86_400_000;
const MOST_DAYS = 365;

function TimeMachine() {
  const here = useStore(route);
  const [open, setOpen] = useState(false);
  const at = here.query.as_of;
  const back = at ? Math.max(0, Math.min(MOST_DAYS, Math.round((Date.now() - new Date(at)) / DAY_MS))) : 0;
  const set = (days) => setQuery({ as_of: days ? new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 19) + "Z" : "" }, { replace: true });
  if (!open && !at) {
    return html`<button class="quiet" onClick=${() => setOpen(true)} title="See the memory as it was">Time machine</button>`;
  }
  return html`<div class="machine" role="group" aria-label="Time machine">
    <label><span class="hidden">Days back</span><input type="range" min="0" max=${MOST_DAYS} value=${MOST_DAYS - back}
      aria-valuetext=${at ? when(at) : "now"} onInput=${(event) => set(MOST_DAYS - Number(event.target.value))} /></label>
    <span class="machine-at">${at ? `${when(at)} · ${ago(at)}` : "now"}</span>
    <button class="quiet" onClick=${() => { set(0); setOpen(false); }}>Back to now</button></div>`;
}

function Top() {
  const who = useStore(session);
  return html`<header class="top">
    <button class="menu-button quiet" aria-label="Menu" onClick=${() => menu.set((open) => !open)}>☰</button>
    <a class="brand" href="/" aria-label="Vestige, home">Vestige</a>
    <${Quick} /><${TimeMachine} /><span class="grow"></span><${LiveState} />
    <button class="quiet wide" onClick=${() => json.set(true)} title="The requests of this page">Requests</button>
    <button class="quiet" onClick=${() => palette.set(true)} aria-label="Commands"><kbd>Ctrl K</kbd></button>
    <button class="quiet" onClick=${toggleTheme} aria-label="Change the theme" title="Dark or light">◐</button>
    <details class="who"><summary class="quiet">${who.label}</summary><div class="who-body">
      <p>May ${who.permissions.join(", ")}.</p>
      <p>Sees ${[...(who.scopes ?? []), ...(who.domains ?? [])].join(", ") || "everything"}.</p>
      ${who.csrf && html`<button onClick=${logOut}>Log out</button>`}</div></details>
  </header>`;
}

function Notices() {
  const all = useStore(notices);
  return html`<div class="notices" role="status" aria-live="polite">${all.map((one) => html`<div class=${`notice ${one.kind}`} key=${one.id}>
    <span>${one.text}</span>
    ${one.undo && html`<button onClick=${() => { dismissNotice(one.id); one.undo(); }}>Undo</button>`}
    <button class="quiet" aria-label="Dismiss" onClick=${() => dismissNotice(one.id)}>✕</button></div>`)}</div>`;
}

function commands() {
  const found = NAV.map((page) => ({ name: page.title, what: page.group, key: page.key, run: () => go(page.path) }));
  found.push({ name: "Change the theme", what: "View", run: toggleTheme });
  found.push({ name: "Keys", what: "View", key: "?", run: () => help.set(true) });
  found.push({ name: "Requests of this page as JSON", what: "View", run: () => json.set(true) });
  if (may("write")) {
    found.push({ name: "Remember something", what: "Do", run: () => go("/memories", { new: 1 }) });
    found.push({ name: "Dream now", what: "Do", run: () => run("/dream", "Dreamed.") });
    found.push({ name: "Consolidate now", what: "Do", run: () => run("/consolidate", "Consolidated.") });
  }
  if (session.value.csrf) found.push({ name: "Log out", what: "Do", run: logOut });
  return found;
}

async function run(path, done) {
  try {
    await post(path, {});
    notify(done);
  } catch (error) {
    notify(error.message, { kind: "failed" });
  }
}

function Palette() {
  const open = useStore(palette);
  return open ? html`<${OpenPalette} />` : null;
}

function OpenPalette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [hits, setHits] = useState([]);
  const asked = text.trim().toLowerCase();
  useEffect(() => {
    if (asked.length < 3) {
      setHits([]);
      return undefined;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      post("/search", { query: text.trim(), limit: 5, record: false }, { signal: stop.signal, quiet: true })
        .then((answer) => setHits(answer.results), () => {});
    }, 250);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [asked]);
  const shown = [
    ...commands().filter((one) => `${one.name} ${one.what}`.toLowerCase().includes(asked)),
    ...(asked ? [{ name: `Search for “${text.trim()}”`, what: "Search", run: () => go("/search", { q: text.trim() }) }] : []),
    ...hits.map((hit) => ({ name: clip(hit.content, 90), what: "Memory", run: () => go(`/memories/${hit.id}`) })),
  ];
  const chosen = Math.min(at, shown.length - 1);
  const pick = (one) => {
    palette.set(false);
    one.run();
  };
  const keys = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, shown.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter" && shown[chosen]) pick(shown[chosen]);
    else return;
    event.preventDefault();
  };
  return html`<${Dialog} title="Commands" className="palette" onClose=${() => palette.set(false)}>
    <input type="text" role="combobox" aria-expanded="true" aria-controls="commands" aria-label="Command or memory" autofocus
      aria-activedescendant=${shown.length ? `command-${chosen}` : null} placeholder="Go to a page, do something, find a memory"
      value=${text} onInput=${(event) => { setText(event.target.value); setAt(0); }} onKeyDown=${keys} />
    <ul id="commands" role="listbox" aria-label="Commands">${shown.map((one, index) => html`<li role="option" id=${`command-${index}`}
      aria-selected=${index === chosen} onClick=${() => pick(one)}><span><bdi>${one.name}</bdi></span><small>${one.what}</small>${one.key && html`<kbd>${one.key}</kbd>`}</li>`)}</ul>
    ${!shown.length && html`<p class="muted">Nothing fits.</p>`}<//>`;
}

function Help() {
  const open = useStore(help);
  if (!open) return null;
  const keys = [["Ctrl K", "commands"], ["/", "search"], ["?", "this list"], ["j k", "next, previous in lists"],
    ["a r e", "accept, reject, open in the inbox"], ["1–4", "rate in the review"], ["Esc", "close"]];
  return html`<${Dialog} title="Keys" onClose=${() => help.set(false)}>
    <div class="keys"><dl>${keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
    <dl>${NAV.map((page) => html`<div><dt><kbd>${page.key}</kbd></dt><dd>${page.title}</dd></div>`)}</dl></div><//>`;
}

function Json() {
  const open = useStore(json);
  const all = useStore(requests);
  if (!open) return null;
  return html`<${Dialog} title="Requests of this page" className="wide-dialog" onClose=${() => json.set(false)}>
    ${all.length ? null : html`<p class="muted">None yet.</p>`}
    ${all.map((one, index) => html`<details open=${index === 0}><summary><code>${one.method} ${one.url}</code> <span class="muted">${one.status}</span></summary>
      ${one.method === "GET" && html`<p><a href=${one.url} data-native>Open as JSON</a></p>`}
      ${one.body && one.body !== "{}" && html`<pre tabindex="0">${one.body}</pre>`}
      <pre tabindex="0">${JSON.stringify(one.answer, null, 2).slice(0, 20_000)}</pre></details>`)}<//>`;
}

function Main() {
  const here = useStore(route);
  const page = pageOf(here.path);
  const [error, reset] = useErrorBoundary();
  const first = useRef(true);
  useEffect(() => {
    if (error) reset();
    requests.set([]);
    if (!first.current) document.querySelector("main h1")?.focus({ preventScroll: true });
    first.current = false;
    window.scrollTo(0, 0);
  }, [here.path]);
  if (error) {
    return html`<div class="page"><h1 tabindex="-1">This page failed</h1><${Failed} error=${error} retry=${reset} /></div>`;
  }
  if (!page) return html`<div class="page"><h1 tabindex="-1">No such page</h1><p><a href="/">Home</a></p></div>`;
  const present = here.query.as_of && !(page.nav.past && page.nav.path === here.path);
  return html`${present && html`<p class="present" role="status">The time machine is set to ${when(here.query.as_of)}. This page shows the present.</p>`}<${page.component} key=${here.path} id=${page.id} query=${here.query} />`;
}

const BOTTOM = ["/", "/search", "/memories", "/inbox", "/feed"];

function Bottom() {
  const here = useStore(route);
  return html`<nav class="bottom" aria-label="Main pages">${BOTTOM.map((path) => {
    const page = NAV.find((one) => one.path === path);
    return html`<a href=${path} aria-current=${pageOf(here.path)?.nav === page ? "page" : null}>${page.title}</a>`;
  })}</nav>`;
}

function App() {
  const open = useStore(menu);
  return html`<a class="skip" href="#main">Skip to the page</a>
    <div class=${`frame ${open ? "menu-open" : ""}`}><${Top} /><${Navigation} /><main id="main"><${Main} /></main></div>
    <${Bottom} /><${Notices} /><${Toasts} /><${Palette} /><${Help} /><${Json} />`;
}

async function start() {
  const root = document.getElementById("app");
  let who;
  try {
    who = await logIn();
  } catch {
    render(html`<div class="page"><h1>Vestige</h1><${Failed} error=${{ status: 0, message: "" }} retry=${start} /></div>`, root);
    return;
  }
  if (!who) return;
  session.set(who);
  document.addEventListener("keydown", keyed);
  document.addEventListener("click", clicked);
  render(html`<${App} />`, root);
  connect();
}

start();
