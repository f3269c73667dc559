// Components that pages are made of.

import { address, ago, clip, failure, get, go, html, number, percent, route, store, useData, useEffect, useLayoutEffect, useRef, useState, useStore, when, words } from "./lib.js";

export const TYPES = {
  fact: "F", concept: "C", event: "E", person: "P", place: "L", note: "N", pattern: "A", decision: "D",
};

export function TypeMark({ type }) {
  const known = type in TYPES;
  return html`<span class=${`mark mark-${known ? type : "other"}`} title=${type}>
    <span aria-hidden="true">${known ? TYPES[type] : (type[0] ?? "?").toUpperCase()}</span><span class="hidden">${type}</span></span>`;
}

// "A minute ago" becomes two while the page is open.
const minute = store(0);
setInterval(() => minute.set((count) => count + 1), 60_000);

export function Time({ at }) {
  useStore(minute);
  return at ? html`<time datetime=${at} title=${when(at)}>${ago(at)}</time>` : html`<span class="muted">–</span>`;
}

export function Page({ title, lead, actions, children, twin, wide = false }) {
  const heading = useRef(null);
  useEffect(() => {
    document.title = `${title} · Vestige`;
  }, [title]);
  return html`<div class="page">
    <header class=${`page-head ${wide ? "wide-head" : ""}`}>
      <div><h1 ref=${heading} tabindex="-1">${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>
      <div class="actions">${actions}${twin && html`<a class="button quiet twin" href=${twin} data-native title="The same as JSON">JSON</a>`}</div>
    </header>
    ${children}
  </div>`;
}

export function Panel({ title, extra, children, className = "", id }) {
  return html`<section class=${`panel ${className}`} id=${id}>
    ${title && html`<header class="panel-head"><h2>${title}</h2>${extra && html`<div class="panel-extra">${extra}</div>`}</header>`}
    ${children}
  </section>`;
}

export function Loading({ rows = 3, note }) {
  return html`<div class="skeleton" role="status">${note ? html`<p class="note">${note}</p>` : html`<span class="hidden">Loading</span>`}${Array.from({ length: rows }, () => html`<div></div>`)}</div>`;
}

export function Failed({ error, retry }) {
  const away = error.status === 0;
  if (error.status === 404) {
    return html`<div class="state empty" role="alert"><p><strong>${error.message}</strong></p><p>It may have been deleted, or the address is wrong. <a href="/memories">All memories</a></p></div>`;
  }
  return html`<div class="state failed" role="alert">
    <p><strong>${away ? "The server does not answer." : error.status === 403 ? "Your key may not see this." : "This did not work."}</strong></p>
    ${!away && html`<p><${Prose} text=${failure(error)} /></p>`}
    ${retry && html`<button onClick=${retry}>Try again</button>`}
  </div>`;
}

export function Empty({ title, children }) {
  return html`<div class="state empty"><p><strong>${title}</strong></p>${children && html`<p>${children}</p>`}</div>`;
}

// Shows the answer of `useData`: loading, failed, or what `children(data)` makes of it.
export function Loaded({ from, children, rows, note }) {
  if (from.error) return html`<${Failed} error=${from.error} retry=${from.reload} />`;
  if (from.data === null) return html`<${Loading} rows=${rows} note=${note} />`;
  return children(from.data);
}

export function Link({ to, query, children, ...rest }) {
  const carried = route.value.query.as_of && !query?.as_of ? { as_of: route.value.query.as_of } : {};
  return html`<a href=${address(to, { ...carried, ...query })} ...${rest}>${children}</a>`;
}

export function MemoryLink({ id, text, className = "" }) {
  return html`<${Link} to=${`/memories/${encodeURIComponent(id)}`} class=${`memory-link ${className}`}><bdi>${text ? clip(text) : id.slice(0, 13)}</bdi><//>`;
}

export function Tags({ tags, onPick }) {
  return tags?.length
    ? html`<span class="tags">${tags.map((tag) => onPick
      ? html`<button type="button" class="tag" onClick=${() => onPick(tag)}>${tag}</button>`
      : html`<${Link} to="/memories" query=${{ tags: tag }} class="tag">${tag}<//>`)}</span>`
    : null;
}

export function Meter({ value, label, tone }) {
  const level = tone ?? (value >= 0.7 ? "good" : value >= 0.4 ? "fair" : "low");
  return html`<span class="meter" title=${`${label ?? "retention"} ${percent(value, 1)}`}>
    <span class="meter-track" aria-hidden="true"><span class=${`meter-fill ${level}`} style=${{ width: percent(Math.max(0, Math.min(1, value))) }}></span></span>
    <span class="meter-text">${percent(value)}</span></span>`;
}

export function Figure({ value, label, to, query, tone, title }) {
  const inside = html`<span class=${`figure-value ${tone ?? ""}`}>${typeof value === "number" ? number(value) : value}</span><span class="figure-label">${label}</span>`;
  return to ? html`<${Link} to=${to} query=${query} class="figure" title=${title}>${inside}<//>` : html`<div class="figure" title=${title}>${inside}</div>`;
}

export function Facts({ rows }) {
  const shown = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export function Choice({ label, value, options, onChange, title }) {
  return html`<label class="field" title=${title}><span>${label}</span><select value=${value} onChange=${(event) => onChange(event.target.value)}>
    ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}</select></label>`;
}

export function Field({ label, value, onCommit, type = "text", className = "", ...rest }) {
  const [text, set] = useState(value);
  useEffect(() => set(value), [value]);
  return html`<label class=${`field ${className}`}><span>${label}</span><input type=${type} value=${text} ...${rest}
    onInput=${(event) => set(event.target.value)}
    onChange=${(event) => onCommit(event.target.value)} /></label>`;
}

// A scope, with those that exist as suggestions.
export function ScopeField({ label = "Scope", ...rest }) {
  const known = useData((signal) => get("/stats", {}, { signal, quiet: true }), []);
  return html`<label class="field"><span>${label}</span><input name="scope" list="scopes" required placeholder="/project/name" pattern="/.*" title="A scope begins with /" autocomplete="off" ...${rest} />
    <datalist id="scopes">${Object.keys(known.data?.byScope ?? {}).map((one) => html`<option value=${one} />`)}</datalist></label>`;
}

export function Dialog({ title, onClose, children, className = "" }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    box.current.querySelector("input, textarea, select")?.focus();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${box} class=${className} aria-label=${title} onClose=${onClose}
    onClick=${(event) => event.target === box.current && onClose()}>
    <div class="dialog-body"><header class="panel-head"><h2>${title}</h2>
      <button type="button" class="quiet" aria-label="Close" onClick=${onClose}>✕</button></header>${children}</div></dialog>`;
}

export function Badge({ children, tone = "" }) {
  return html`<span class=${`badge ${tone}`}>${children}</span>`;
}

// A page behind the last one is left: what it showed was settled meanwhile.
export function Pager({ total, offset, limit, onMove, names = ["Newer", "Older"] }) {
  const behind = offset > 0 && offset >= total;
  useEffect(() => {
    if (behind) onMove(Math.max(0, Math.ceil(total / limit) - 1) * limit);
  }, [behind]);
  if (total <= limit || behind) return null;
  const last = Math.min(total, offset + limit);
  return html`<nav class="pager" aria-label="Parts of the list">
    <button disabled=${offset === 0} onClick=${() => onMove(Math.max(0, offset - limit))}>${names[0]}</button>
    <span>${number(offset + 1)}–${number(last)} of ${number(total)}</span>
    <button disabled=${last >= total} onClick=${() => onMove(offset + limit)}>${names[1]}</button></nav>`;
}

// Advice of the server, where `commands` stand between backticks.
export function Prose({ text }) {
  return text.split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part));
}

// Memory text: text nodes only, in its own direction.
export function MemoryText({ text }) {
  const long = text.length > LONG;
  const [all, setAll] = useState(false);
  return html`<div class="memory-text" dir="auto">${long && !all ? text.slice(0, LONG) : text}</div>
    ${long && !all && html`<button class="quiet" onClick=${() => setAll(true)}>Show all ${number(text.length)} characters</button>`}`;
}
const LONG = 8000;

// A domain without a name of its own has its id for one, which says nothing to a reader.
export const topicName = (one) => (one.label === (one.domain ?? one.id) ? "unnamed topic" : one.label);

export function openMemory(id) {
  go(`/memories/${encodeURIComponent(id)}`);
}

// A suppression can be lifted for a day; then it has taken effect on the links, too.
const LABILE_MS = 86_400_000;

export function canLift(memory) {
  return Boolean(memory.suppressedAt) && Date.now() - new Date(memory.suppressedAt) < LABILE_MS;
}

export { words };
