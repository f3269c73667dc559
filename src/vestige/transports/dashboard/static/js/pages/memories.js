// Memories: a list of all, filtered and counted by the server, drawn row by row as it is scrolled.

import { act, address, api, clip, get, go, html, many, may, notify, number, percent, post, route, setQuery, urlOf, useData, useEffect, useRef, useState } from "../lib.js";
import { Badge, Choice, Dialog, Empty, Failed, Field, Link, Loading, MemoryLink, Meter, openMemory, Page, Tags, Time, TYPES, TypeMark } from "../ui.js";
import { useLive } from "../live.js";

const ROW = 40;
const PAGE = 100;
const SPARE = 8;
const ORDERS = [["newest", "newest"], ["oldest", "oldest"], ["due", "due first"], ["retention", "weakest first"]];

export function filtersOf(query) {
  return {
    order: query.order ?? "newest",
    tags: query.tags ? query.tags.split(",").filter(Boolean) : [],
    include_types: query.type ? [query.type] : [],
    scope: query.scope || null,
    source: query.source || null,
    domains: query.domain ? [query.domain] : [],
    min_retention: query.min_retention || null,
    max_retention: query.max_retention || null,
    created_from: query.from || null,
    created_to: query.to || query.as_of || null, // what was written since was not known then
    pinned: query.pinned || null,
    due: query.due === "1" ? true : null,
    include_suppressed: query.suppressed === "1" ? true : null,
    as_of: query.as_of || null,
  };
}

// Pages of rows, each requested when one of its rows comes into view.
function useRows(filters) {
  const key = JSON.stringify(filters);
  const [, redraw] = useState(0);
  const state = useRef({ key: "", pages: new Map(), total: null, error: null, stop: null });
  const self = state.current;
  const reset = () => {
    self.stop?.abort();
    Object.assign(self, { key, pages: new Map(), total: null, error: null, stop: new AbortController() });
  };
  if (self.key !== key) reset();
  const load = (page) => {
    if (self.pages.has(page) || self.error) return;
    self.pages.set(page, null);
    const { stop, pages } = self;
    get("/memories", { ...filters, limit: PAGE, offset: page * PAGE }, { signal: stop.signal }).then((answer) => {
      pages.set(page, answer.results);
      if (self.pages !== pages) return;
      self.total = answer.total;
      redraw((turn) => turn + 1);
    }, (error) => {
      if (error.name === "AbortError" || self.pages !== pages) return;
      self.error = error;
      redraw((turn) => turn + 1);
    });
  };
  useEffect(() => {
    load(0);
    const { stop } = self;
    return () => stop.abort();
  }, [key]);
  const reload = () => {
    reset();
    load(0);
    redraw((turn) => turn + 1);
  };
  const row = (index) => self.pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null;
  const reach = (first, last) => {
    for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last) / PAGE); page += 1) load(page);
  };
  return { total: self.total, error: self.error, row, reach, reload };
}

function Row({ memory, index, chosen, onChoose, active }) {
  const style = { transform: `translateY(${index * ROW}px)` };
  if (!memory) return html`<div class="vrow" style=${style} role="row" aria-rowindex=${index + 1}><span role="cell" class="muted">…</span></div>`;
  return html`<div class=${`vrow ${active ? "active" : ""} ${memory.suppressionCount ? "faint" : ""}`} style=${style} role="row" aria-rowindex=${index + 1}>
    <span role="cell">${onChoose ? html`<input type="checkbox" aria-label="Select" checked=${chosen} onChange=${() => onChoose(memory.id)} />` : null}</span>
    <span role="cell"><${TypeMark} type=${memory.nodeType} /></span>
    <span role="cell" class="vtext"><${MemoryLink} id=${memory.id} text=${memory.content} /></span>
    <span role="cell" class="vtags"><${Tags} tags=${memory.tags.slice(0, 3)} /></span>
    <span role="cell"><${Meter} value=${memory.retentionStrength} /></span>
    <span role="cell" class="vtime"><${Time} at=${memory.createdAt} /></span></div>`;
}

function List({ rows, chosen, onChoose }) {
  const box = useRef(null);
  const [view, setView] = useState({ first: 0, last: 30 });
  const [active, setActive] = useState(-1);
  const total = rows.total ?? 0;
  useEffect(() => {
    const element = box.current;
    const measure = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW) - SPARE);
      const last = Math.min(total, Math.ceil((element.scrollTop + element.clientHeight) / ROW) + SPARE);
      rows.reach(first, last - 1);
      setView((old) => (old.first === first && old.last === last ? old : { first, last }));
    };
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      watch.disconnect();
    };
  }, [total, rows]);
  const keys = (event) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      const next = Math.max(0, Math.min(total - 1, active + step));
      setActive(next);
      const top = next * ROW;
      const element = box.current;
      if (top < element.scrollTop) element.scrollTop = top;
      if (top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
    } else if (event.key === "Enter" && rows.row(active) && event.target === box.current) {
      event.preventDefault();
      openMemory(rows.row(active).id);
    } else if (event.key === "x" && rows.row(active) && onChoose) {
      event.preventDefault();
      onChoose(rows.row(active).id);
    }
  };
  const shown = [];
  for (let index = view.first; index < Math.min(view.last, total); index += 1) {
    const memory = rows.row(index);
    shown.push(html`<${Row} key=${index} memory=${memory} index=${index} active=${index === active} chosen=${memory && chosen.has(memory.id)} onChoose=${onChoose} />`);
  }
  return html`<div class="vlist" ref=${box} tabindex="0" role="table" aria-label="Memories" aria-rowcount=${total} onKeyDown=${keys}>
    <div class="vlist-body" role="rowgroup" style=${{ height: `${total * ROW}px` }}>${shown}</div></div>`;
}

// -- Bulk actions

const ACTIONS = {
  suppress: { name: "Suppress", what: "hides them from searches; it can be undone for 24 hours", run: (id) => post(`/memories/${id}/suppress`, { reason: "cleaned up in the dashboard" }, { quiet: true }), undo: (id) => post(`/memories/${id}/suppress`, { reverse: true }, { quiet: true }) },
  pin: { name: "Pin", what: "protects them from every automatic change", run: (id) => api("PUT", `/memories/${id}/pin`, {}, { quiet: true }), undo: (id) => api("DELETE", `/memories/${id}/pin`, {}, { quiet: true }) },
  promote: { name: "Promote", what: "keeps them longer and ranks them higher", run: (id) => post(`/memories/${id}/promote`, {}, { quiet: true }), undo: (id) => post(`/memories/${id}/demote`, {}, { quiet: true }) },
  tag: { name: "Add a tag", what: "adds this tag to them", asks: "Tag", run: (id, text) => post(`/memories/${id}/tags`, { add: [text] }, { quiet: true }), undo: (id, text) => post(`/memories/${id}/tags`, { remove: [text] }, { quiet: true }) },
  delete: { name: "Delete for good", what: "deletes text, revisions and links; this cannot be undone", run: (id) => api("DELETE", `/memories/${id}`, {}, { quiet: true }) },
};

async function each(ids, work) {
  const left = [...ids];
  const done = [];
  const failed = [];
  const one = async () => {
    while (left.length) {
      const id = left.shift();
      try {
        await work(id);
        done.push(id);
      } catch (error) {
        failed.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: 4 }, one));
  return { done, failed };
}

export async function allIds(filters, signal) {
  const ids = [];
  for (;;) {
    const { results, total } = await get("/memories", { ...filters, limit: 200, offset: ids.length, detail_level: "brief" }, { signal, quiet: true });
    ids.push(...results.map((one) => one.id));
    if (!results.length || ids.length >= total) return ids;
  }
}

function Preview({ action, ids, onClose, onDone }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const sample = useData((signal) => get("/memories/batch", { ids: ids.slice(0, 50) }, { signal, quiet: true }), [ids.length]);
  const plan = ACTIONS[action];
  const run = async (event) => {
    event.preventDefault();
    setBusy(true);
    const { done, failed } = await each(ids, (id) => plan.run(id, text));
    const undo = plan.undo && (async () => {
      await each(done, (id) => plan.undo(id, text));
      notify("Undone.");
      onDone();
    });
    notify(`${plan.name}: ${many(done.length, "memory", "memories")}${failed.length ? `; ${failed.length} refused: ${failed[0].message}` : ""}.`, { undo, kind: failed.length ? "failed" : "done" });
    onDone();
    onClose();
  };
  const nodes = sample.data?.results ?? [];
  return html`<${Dialog} title=${`${plan.name}: ${many(ids.length, "memory", "memories")}`} onClose=${onClose}>
    <form onSubmit=${run}><p>This ${plan.what}.</p>
      ${plan.asks && html`<label class="field"><span>${plan.asks}</span><input required value=${text} onInput=${(event) => setText(event.target.value)} /></label>`}
      <ul class="plain rows preview">${nodes.slice(0, 8).map((one) => html`<li class="memory-row"><${TypeMark} type=${one.nodeType} /><bdi>${clip(one.content, 110)}</bdi></li>`)}</ul>
      ${ids.length > 8 && html`<p class="note">and ${number(ids.length - 8)} more</p>`}
      <div class="actions"><button class=${action === "delete" ? "danger" : "primary"} disabled=${busy}>${plan.name}</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function Remember({ onClose, onDone }) {
  const submit = async (event) => {
    event.preventDefault();
    const fields = event.target.elements;
    const answer = await act((got) => `Remembered: ${got.decision ?? "stored"}.`, () => post("/memories", {
      content: fields.content.value, node_type: fields.type.value, tags: fields.tags.value.split(",").map((one) => one.trim()).filter(Boolean),
    }));
    if (answer) {
      onDone();
      onClose();
    }
  };
  return html`<${Dialog} title="Remember something" onClose=${onClose}><form class="form" onSubmit=${submit}>
    <label class="field"><span>Text</span><textarea name="content" rows="5" required></textarea></label>
    <label class="field"><span>Type</span><select name="type">${Object.keys(TYPES).map((one) => html`<option>${one}</option>`)}</select></label>
    <label class="field"><span>Tags, with commas</span><input name="tags" /></label>
    <div class="actions"><button class="primary">Remember</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

export function Memories({ query }) {
  const filters = filtersOf(query);
  const rows = useRows(filters);
  const [chosen, setChosen] = useState(new Set());
  const [plan, setPlan] = useState(null);
  const [gathering, setGathering] = useState(false);
  const writes = may("write");
  useLive(["MemoryCreated", "MemoryUpdated", "MemoryDeleted", "MemorySuppressed", "MemoryUnsuppressed"], rows.reload);
  const choose = (id) => setChosen((old) => {
    const next = new Set(old);
    if (!next.delete(id)) next.add(id);
    return next;
  });
  const everything = async () => {
    setGathering(true);
    try {
      setChosen(new Set(await allIds(filters)));
    } catch (error) {
      notify(error.message, { kind: "failed" });
    }
    setGathering(false);
  };
  const set = (name) => (value) => setQuery({ [name]: value });
  const twin = urlOf("/memories", filters);
  const filtered = Object.keys(query).some((name) => !["order", "new", "as_of"].includes(name));
  return html`<${Page} title="Memories" lead=${rows.total === null ? "…" : many(rows.total, "memory", "memories") + (filtered ? " fit the filter" : "")} twin=${twin}
      actions=${writes && html`<button class="primary" onClick=${() => setQuery({ new: 1 })}>Remember</button>`}>
    <div class="filters">
      <${Choice} label="Order" value=${filters.order} options=${ORDERS} onChange=${set("order")} />
      <${Choice} label="Type" value=${query.type ?? ""} options=${[["", "any"], ...Object.keys(TYPES).map((one) => [one, one])]} onChange=${set("type")} />
      <${Field} label="Tags" value=${query.tags ?? ""} onCommit=${set("tags")} placeholder="a,b" />
      <${Field} label="Source" value=${query.source ?? ""} onCommit=${set("source")} />
      <${Field} label="Scope" value=${query.scope ?? ""} onCommit=${set("scope")} placeholder="/" />
      <${Choice} label="Retention" value=${query.max_retention ?? ""} options=${[["", "any"], ["0.3", "below 30%"], ["0.5", "below 50%"], ["0.7", "below 70%"]]} onChange=${set("max_retention")} />
      <${Field} label="Written before" type="date" value=${query.to ?? ""} onCommit=${set("to")} />
      <label class="check"><input type="checkbox" checked=${query.pinned === "true"} onChange=${(event) => set("pinned")(event.target.checked ? "true" : "")} /> pinned</label>
      <label class="check"><input type="checkbox" checked=${query.suppressed === "1"} onChange=${(event) => set("suppressed")(event.target.checked ? "1" : "")} /> with suppressed</label>
      ${query.domain && html`<button class="tag" onClick=${() => set("domain")("")}>domain ${query.domain} ✕</button>`}
      ${filtered && html`<button class="quiet" onClick=${() => go("/memories", { order: query.order ?? "" })}>Clear</button>`}
    </div>
    ${writes && rows.total > 0 && html`<div class="bulk" role="toolbar" aria-label="Selected memories">
      <span>${chosen.size ? `${number(chosen.size)} selected` : "None selected"}</span>
      <button class="quiet" disabled=${gathering} onClick=${everything}>Select all ${number(rows.total)}</button>
      ${chosen.size > 0 && html`${Object.entries(ACTIONS).map(([name, one]) => html`<button class=${name === "delete" ? "danger" : ""} onClick=${() => setPlan(name)}>${one.name}</button>`)}<button class="quiet" onClick=${() => setChosen(new Set())}>Select none</button>`}</div>`}
    ${rows.error ? html`<${Failed} error=${rows.error} retry=${rows.reload} />`
      : rows.total === null ? html`<${Loading} rows=${10} />`
      : rows.total === 0 ? html`<${Empty} title=${filtered ? "No memory fits this filter." : "The memory is empty."}>${filtered ? html`<button onClick=${() => go("/memories")}>Clear the filter</button>` : "What your agents remember appears here."}<//>`
      : html`<${List} rows=${rows} chosen=${chosen} onChoose=${writes ? choose : null} />`}
    ${plan && html`<${Preview} action=${plan} ids=${[...chosen]} onClose=${() => setPlan(null)} onDone=${() => { setChosen(new Set()); rows.reload(); }} />`}
    ${query.new && writes && html`<${Remember} onClose=${() => setQuery({ new: "" }, { replace: true })} onDone=${rows.reload} />`}
  <//>`;
}
