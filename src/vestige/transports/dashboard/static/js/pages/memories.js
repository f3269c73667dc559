// Memories: a list of all, filtered and counted by the server, drawn row by row as it is scrolled.

import { act, bytes, clip, get, go, html, many, may, number, post, session, setQuery, urlOf, useData, useEffect, useRef, useState } from "../lib.js";
import { Choice, Dialog, Empty, Failed, Field, Loaded, Loading, MemoryLink, Meter, openMemory, Page, ScopeField, Tags, Time, TYPES, TypeMark } from "../ui.js";
import { useLive } from "../live.js";

const ROW = 40;
const PAGE = 100;
const SPARE = 8;
const BELOW = 62; // the space below the list in the window
const LEAST_HEIGHT = 320;
const RECALLED = "Never: since it was written, it was not shown in an answer to an agent, reviewed, rated, used, corrected or stored again. Looking at it here does not count.";
const ORDERS = [["newest", "newest"], ["oldest", "oldest"], ["due", "due first"], ["retention", "weakest first"]];

export function filtersOf(query) {
  return {
    order: query.order ?? "newest",
    tags: query.tags ? query.tags.split(",").filter(Boolean) : [],
    include_types: query.type ? [query.type] : [],
    scope: query.scope || null,
    source: query.source || null,
    session_id: query.session || null,
    domains: query.domain ? [query.domain] : [],
    min_retention: query.min_retention || null,
    max_retention: query.max_retention || null,
    created_from: query.from || null,
    created_to: query.to || query.as_of || null, // what was written since was not known then
    pinned: query.pinned || null,
    recalled: query.recalled || null,
    due: query.due === "1" ? true : null,
    include_suppressed: query.suppressed === "1" ? true : null,
    suppressed: query.suppressed === "only" ? true : null,
    as_of: query.as_of || null,
  };
}

// The same filter for a change of everything that it lists: without the order, and without what is not set.
function selected({ order, ...filters }) {
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== null && !(Array.isArray(value) && !value.length)));
}

const sameRows = (some, others) => some.length === others.length && some.every((one, at) => ["id", "updatedAt", "suppressionCount"].every((name) => one[name] === others[at][name]));

// Pages of rows, each requested when one of its rows comes into view. What is listed stays where it is: that
// something has changed elsewhere is only said, until the reader asks for it.
function useRows(filters) {
  const key = JSON.stringify(filters);
  const [, redraw] = useState(0);
  const state = useRef({ key: "", pages: new Map(), total: null, error: null, stop: null, at: 0, turn: 0, changed: false });
  const self = state.current;
  const reset = () => {
    self.stop?.abort();
    Object.assign(self, { key, pages: new Map(), total: null, error: null, stop: new AbortController(), at: 0, changed: false });
  };
  if (self.key !== key) reset();
  const load = (page) => {
    if (self.pages.has(page) || self.error) return;
    self.pages.set(page, null);
    const { stop, pages } = self;
    get("/memories", { ...filters, limit: PAGE, offset: page * PAGE }, { signal: stop.signal }).then((answer) => {
      pages.set(page, answer.results);
      if (self.pages !== pages) return;
      self.changed ||= self.total !== null && answer.total !== self.total;
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
  // Asks again for the page in view, and shows it or only says that it differs.
  const again = (show) => {
    if (self.total === null) {
      reset();
      load(0);
      return;
    }
    if (show) self.turn += 1;
    const { at, turn, stop } = self;
    get("/memories", { ...filters, limit: PAGE, offset: at * PAGE }, { signal: stop.signal, quiet: !show }).then((answer) => {
      if (stop.signal.aborted || turn !== self.turn) return;
      const listed = self.pages.get(at);
      if (show || !self.total) Object.assign(self, { pages: new Map([[at, answer.results]]), total: answer.total, error: null, changed: false });
      else self.changed ||= answer.total !== self.total || (Boolean(listed) && !sameRows(listed, answer.results));
      redraw((count) => count + 1);
    }, (error) => {
      if (!show || stop.signal.aborted || turn !== self.turn) return;
      self.error = error;
      redraw((count) => count + 1);
    });
  };
  const row = (index) => self.pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null;
  const reach = (first, last) => {
    self.at = Math.floor(first / PAGE);
    for (let page = Math.floor(first / PAGE); page <= Math.floor(Math.max(first, last) / PAGE); page += 1) load(page);
  };
  const retry = () => {
    self.total = null;
    again(true);
    redraw((count) => count + 1);
  };
  return { total: self.total, error: self.error, changed: self.changed, row, reach, retry, reload: () => again(true), look: () => again(false) };
}

function Row({ memory, index, chosen, onChoose, active }) {
  const style = { transform: `translateY(${index * ROW}px)` };
  if (!memory) return html`<div class="vrow" style=${style} role="row" aria-rowindex=${index + 1}><span role="cell" class="muted">…</span></div>`;
  return html`<div class=${`vrow ${active ? "active" : ""} ${memory.suppressionCount ? "faint" : ""}`} style=${style} role="row" aria-rowindex=${index + 1}>
    <span role="cell">${onChoose ? html`<input type="checkbox" aria-label="Select" checked=${chosen} onChange=${() => onChoose(memory.id)} />` : null}</span>
    <span role="cell"><${TypeMark} type=${memory.nodeType} /></span>
    <span role="cell" class="vtext"><${MemoryLink} id=${memory.id} text=${memory.content} /></span>
    <span role="cell" class="vtags"><${Tags} tags=${memory.tags.slice(0, 2)} /></span>
    <span role="cell"><${Meter} value=${memory.retentionStrength} /></span>
    <span role="cell" class="vtime"><${Time} at=${memory.createdAt} /></span></div>`;
}

function List({ rows, chosen, all, onChoose }) {
  const box = useRef(null);
  const [view, setView] = useState({ first: 0, last: 30 });
  const [active, setActive] = useState(-1);
  const total = rows.total ?? 0;
  useEffect(() => {
    const element = box.current;
    const fit = () => {
      const left = innerHeight - element.getBoundingClientRect().top - scrollY - BELOW;
      element.style.height = `${Math.max(LEAST_HEIGHT, left)}px`;
    };
    const measure = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / ROW) - SPARE);
      const last = Math.min(total, Math.ceil((element.scrollTop + element.clientHeight) / ROW) + SPARE);
      rows.reach(first, last - 1);
      setView((old) => (old.first === first && old.last === last ? old : { first, last }));
    };
    fit();
    measure();
    addEventListener("resize", fit);
    element.addEventListener("scroll", measure, { passive: true });
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      removeEventListener("resize", fit);
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
    shown.push(html`<${Row} key=${index} memory=${memory} index=${index} active=${index === active} chosen=${memory && (all || chosen.has(memory.id))} onChoose=${onChoose} />`);
  }
  return html`<div class="vlist" ref=${box} tabindex="0" role="table" aria-label="Memories" aria-rowcount=${total} onKeyDown=${keys}>
    <div class="vlist-body" role="rowgroup" style=${{ height: `${total * ROW}px` }}>${shown}</div></div>`;
}

// -- Bulk actions: the server selects, counts, changes and undoes

const ACTIONS = {
  suppress: { name: "Suppress", done: "Suppressed", what: "hides them from searches; it can be undone for 24 hours" },
  archive: { name: "Archive", done: "Archived", what: "puts them aside: no search finds them, nothing is deleted" },
  pin: { name: "Pin", done: "Pinned", what: "protects them from every automatic change" },
  unpin: { name: "Unpin", done: "Unpinned", what: "ends their protection" },
  tag: { name: "Add a tag", done: "Tagged", what: "adds this tag to them", asks: "Tag" },
  move: { name: "Move", done: "Moved", what: "moves them to another scope: keys for the former one alone no longer see them", asks: "Scope" },
  delete: { name: "Delete for good", done: "Deleted", what: "deletes text, revisions and links; this cannot be undone" },
};

function Effect({ plan, action }) {
  const lines = [
    plan.unchanged && `${many(plan.unchanged, "memory is", "memories are")} so already`,
    ...Object.entries(plan.refused).map(([why, count]) => `${number(count)} left alone: ${why}`),
    `${bytes(plan.textBytes)} of text`,
    plan.links && `${many(plan.links, "link")} ${action === "delete" ? "go with them" : "of theirs"}`,
  ].filter(Boolean);
  return html`<p class="effect"><strong>${many(plan.changed, "memory", "memories")}</strong> of ${number(plan.matched)} will change.</p><p class="note">${lines.join(" · ")}</p>
    <ul class="plain rows preview">${plan.sample.map((one) => html`<li class="memory-row"><${TypeMark} type=${one.nodeType} /><bdi>${clip(one.content, 110)}</bdi></li>`)}</ul>
    ${plan.changed > plan.sample.length && html`<p class="note">and ${number(plan.changed - plan.sample.length)} more</p>`}`;
}

function Preview({ action, selection, onClose, onDone }) {
  const [text, setText] = useState("");
  const [scope, setScope] = useState(""); // where to move to, once it is written
  const [busy, setBusy] = useState(false);
  const { name, done, what, asks } = ACTIONS[action];
  const moves = action === "move";
  const args = { change: action, ...selection, ...(moves ? { to: text.trim() } : asks ? { add: [text.trim() || "…"] } : {}) };
  const plan = useData((signal) => (moves && !scope ? Promise.resolve(undefined) : post("/memories/bulk", { ...args, dry_run: true }, { signal })), [action, scope]);
  const run = async (event) => {
    event.preventDefault();
    setBusy(true);
    const matched = async () => (plan.data ?? (await post("/memories/bulk", { ...args, dry_run: true }))).matched;
    const answer = await act((got) => `${done}: ${many(got.changed, "memory", "memories")}.`, async () => post("/memories/bulk", { ...args, dry_run: false, expected: await matched() }),
      { after: onDone, undo: action === "delete" ? null : (got) => post(`/memories/bulk/${got.undoId}/undo`, {}) });
    setBusy(false);
    if (answer) onClose();
    else plan.reload();
  };
  return html`<${Dialog} title=${plan.data ? `${name}: ${many(plan.data.changed, "memory", "memories")}` : name} onClose=${onClose}>
    <form class="form" onSubmit=${run}><p>This ${what}.</p>
      ${moves ? html`<${ScopeField} value=${text} onInput=${(event) => setText(event.target.value)} onChange=${(event) => setScope(event.target.value.trim())} />`
        : asks && html`<label class="field"><span>${asks}</span><input required value=${text} onInput=${(event) => setText(event.target.value)} /></label>`}
      <${Loaded} from=${plan}>${(found) => found && html`<${Effect} plan=${found} action=${action} />`}<//>
      <div class="actions"><button class=${action === "delete" ? "danger" : "primary"} disabled=${busy || (plan.data ? !plan.data.changed : action === "delete")}>${name}</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
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
  const [whole, setWhole] = useState(null); // the filter whose every memory is selected, on the server
  const all = whole !== null && whole === JSON.stringify(filters);
  const writes = may("write");
  // A key for some domains could not undo a change of many: the server lets it delete only.
  const actions = Object.entries(ACTIONS).filter(([name]) => name === "delete" || !session.value.domains);
  const [small] = useState(() => matchMedia("(max-width: 768px)").matches);
  useLive(["MemoryCreated", "MemoryUpdated", "MemoryDeleted", "MemorySuppressed", "MemoryUnsuppressed"], rows.look);
  const choose = (id) => {
    setWhole(null);
    setChosen((old) => {
      const next = new Set(all ? [] : old);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  };
  const everything = () => {
    setChosen(new Set());
    setWhole(JSON.stringify(filters));
  };
  const nothing = () => {
    setChosen(new Set());
    setWhole(null);
  };
  const selection = all ? selected(filters) : { ids: [...chosen] };
  const count = all ? rows.total : chosen.size;
  const set = (name) => (value) => setQuery({ [name]: value });
  const twin = urlOf("/memories", filters);
  const filtered = Object.keys(query).some((name) => !["order", "new", "as_of"].includes(name));
  return html`<${Page} title="Memories" lead=${rows.total === null ? "…" : html`${many(rows.total, "memory", "memories") + (filtered ? (rows.total === 1 ? " fits the filter" : " fit the filter") : "")}${rows.changed && html` · <span role="status">changed meanwhile <button class="linkish" onClick=${rows.reload}>Show</button></span>`}`} twin=${twin}
      actions=${writes && html`<button class="primary" onClick=${() => setQuery({ new: 1 })}>Remember</button>`}>
    <details class="filter-box" open=${!small || undefined}><summary>Filter and order</summary><div class="filters">
      <${Choice} label="Order" value=${filters.order} options=${ORDERS} onChange=${set("order")} />
      <${Choice} label="Type" value=${query.type ?? ""} options=${[["", "any"], ...Object.keys(TYPES).map((one) => [one, one])]} onChange=${set("type")} />
      <${Field} label="Tags" value=${query.tags ?? ""} onCommit=${set("tags")} placeholder="a,b" />
      <${Field} label="Source" value=${query.source ?? ""} onCommit=${set("source")} />
      <${Field} label="Scope" value=${query.scope ?? ""} onCommit=${set("scope")} placeholder="/" />
      <${Choice} label="Retention" value=${query.max_retention ?? ""} options=${[["", "any"], ["0.3", "below 30%"], ["0.5", "below 50%"], ["0.7", "below 70%"]]} onChange=${set("max_retention")} />
      <${Choice} label="Suppressed" value=${query.suppressed ?? ""} options=${[["", "left out"], ["1", "also"], ["only", "only these"]]} onChange=${set("suppressed")} />
      <${Field} label="Written after" type="date" value=${query.from ?? ""} onCommit=${set("from")} />
      <${Field} label="Written before" type="date" value=${query.to ?? ""} onCommit=${set("to")} />
      <${Choice} label="Recalled" value=${query.recalled ?? ""} options=${[["", "any"], ["false", "never"], ["true", "at least once"]]} onChange=${set("recalled")} title=${RECALLED} />
      <label class="check"><input type="checkbox" checked=${query.pinned === "true"} onChange=${(event) => set("pinned")(event.target.checked ? "true" : "")} /> pinned</label>
      ${["domain", "session"].map((name) => query[name] && html`<button class="tag" onClick=${() => set(name)("")}>${name} ${query[name]} ✕</button>`)}
      ${filtered && html`<button class="quiet" onClick=${() => go("/memories", { order: query.order ?? "" })}>Clear</button>`}
    </div></details>
    ${writes && rows.total > 0 && html`<div class="bulk" role="toolbar" aria-label="Selected memories">
      <span>${all ? `All ${number(count)} selected` : count ? `${number(count)} selected` : "None selected"}</span>
      ${!all && html`<button class="quiet" onClick=${everything}>Select all ${number(rows.total)}</button>`}
      ${count > 0 && html`${actions.map(([name, one]) => html`<button class=${name === "delete" ? "danger" : ""} onClick=${() => setPlan(name)}>${one.name}</button>`)}<button class="quiet" onClick=${nothing}>Select none</button>`}</div>`}
    ${rows.error ? html`<${Failed} error=${rows.error} retry=${rows.retry} />`
      : rows.total === null ? html`<${Loading} rows=${10} />`
      : rows.total === 0 ? html`<${Empty} title=${filtered ? "No memory fits this filter." : "The memory is empty."}>${filtered ? html`<button onClick=${() => go("/memories")}>Clear the filter</button>` : "What your agents remember appears here."}<//>`
      : html`<${List} rows=${rows} chosen=${chosen} all=${all} onChoose=${writes ? choose : null} />`}
    ${plan && html`<${Preview} action=${plan} selection=${selection} onClose=${() => setPlan(null)} onDone=${() => { nothing(); rows.reload(); }} />`}
    ${query.new && writes && html`<${Remember} onClose=${() => setQuery({ new: "" }, { replace: true })} onDone=${rows.reload} />`}
  <//>`;
}
