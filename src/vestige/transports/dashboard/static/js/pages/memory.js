// One memory: its text, where it comes from, how it changed, what it is linked with, and how it fades.

import { act, ago, api, clip, day, get, go, html, many, may, number, percent, post, score, setQuery, useData, useState, when, words } from "../lib.js";
import { Badge, canLift, Dialog, Empty, Facts, Link, Loaded, MemoryLink, MemoryText, Meter, Page, Panel, ScopeField, Tags, Time, topicName, TypeMark } from "../ui.js";
import { Curve, FRACTIONS } from "../charts.js";
import { diff } from "../diff.js";
import { useLive } from "../live.js";
import { Graph } from "../graph.js";

const RATINGS = ["again", "hard", "good", "easy"];
const DAY_MS = 86_400_000;

function Actions({ node, reload }) {
  const at = `/memories/${encodeURIComponent(node.id)}`;
  const [asking, setAsking] = useState(null);
  if (!may("write")) return null;
  const suppress = () => act("Suppressed: searches no longer show it.", () => post(`${at}/suppress`, {}), { after: reload, undo: () => post(`${at}/suppress`, { reverse: true }) });
  const lift = () => act("The suppression is lifted.", () => post(`${at}/suppress`, { reverse: true }), { after: reload, undo: () => post(`${at}/suppress`, {}) });
  const pin = () => act("Pinned.", () => api("PUT", `${at}/pin`, {}), { after: reload, undo: () => api("DELETE", `${at}/pin`, {}) });
  const unpin = () => act("Unpinned.", () => api("DELETE", `${at}/pin`, {}), { after: reload, undo: () => api("PUT", `${at}/pin`, {}) });
  return html`<button class="primary" onClick=${() => setQuery({ edit: 1 })}>Edit</button>
    ${node.pinned ? html`<button onClick=${unpin}>Unpin</button>` : html`<button onClick=${pin}>Pin</button>`}
    <button onClick=${() => act((answer) => answer.message, () => post(`${at}/promote`, {}), { after: reload, undo: () => post(`${at}/demote`, {}) })}>Promote</button>
    <button onClick=${() => act((answer) => answer.message, () => post(`${at}/demote`, {}), { after: reload, undo: () => post(`${at}/promote`, {}) })}>Demote</button>
    ${canLift(node) ? html`<button onClick=${lift}>Lift suppression</button>` : html`<button onClick=${suppress}>Suppress</button>`}
    <button onClick=${() => setAsking("ends")}>Outdated…</button>
    <button onClick=${() => setAsking("move")}>Move…</button>
    <button class="danger" onClick=${() => setAsking("delete")}>Delete…</button>
    ${asking === "ends" && html`<${Outdated} node=${node} onClose=${() => setAsking(null)} reload=${reload} />`}
    ${asking === "move" && html`<${Move} node=${node} onClose=${() => setAsking(null)} reload=${reload} />`}
    ${asking === "delete" && html`<${Delete} node=${node} onClose=${() => setAsking(null)} />`}`;
}

function Outdated({ node, onClose, reload }) {
  const at = `/memories/${encodeURIComponent(node.id)}/validity`;
  const submit = async (event) => {
    event.preventDefault();
    const value = event.target.elements.until.value;
    const done = await act(`It is true until ${day(value)}.`, () => api("PUT", at, { valid_until: value, valid_from: node.validFrom ?? null }), { after: reload, undo: () => api("PUT", at, { valid_until: node.validUntil ?? null, valid_from: node.validFrom ?? null }) });
    if (done) onClose();
  };
  return html`<${Dialog} title="No longer true" onClose=${onClose}><form class="form" onSubmit=${submit}>
    <p>It stays readable in the past, and searches about the present leave it out.</p>
    <label class="field"><span>True until</span><input type="date" name="until" required value=${new Date().toISOString().slice(0, 10)} /></label>
    <div class="actions"><button class="primary">Set</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function Move({ node, onClose, reload }) {
  const at = `/memories/${encodeURIComponent(node.id)}/scope`;
  const submit = async (event) => {
    event.preventDefault();
    const to = event.target.elements.scope.value.trim();
    const done = await act((answer) => (answer.changed ? `Moved to ${answer.node.scope}.` : "It was there already."), () => api("PUT", at, { to }), { after: reload, undo: () => api("PUT", at, { to: node.scope }) });
    if (done) onClose();
  };
  return html`<${Dialog} title="Move to another scope" onClose=${onClose}><form class="form" onSubmit=${submit}>
    <p>It is in <code>${node.scope}</code>. Keys for the scope that it leaves no longer see it; keys for the other one do, without its past.</p>
    <${ScopeField} />
    <div class="actions"><button class="primary">Move</button><button type="button" onClick=${onClose}>Cancel</button></div></form><//>`;
}

function Delete({ node, onClose }) {
  const run = async () => {
    const done = await act("Deleted.", () => api("DELETE", `/memories/${encodeURIComponent(node.id)}`, { even_pinned: node.pinned ? true : null }));
    if (done) go("/memories");
    onClose();
  };
  const purge = async () => {
    const done = await act("Purged from every file of the store.", () => post(`/memories/${encodeURIComponent(node.id)}/purge`, { confirm: true, even_pinned: node.pinned }));
    if (done) go("/memories");
    onClose();
  };
  return html`<${Dialog} title="Delete for good" onClose=${onClose}>
    <p>Its text, revisions, vectors and links are deleted. This cannot be undone; “Suppress” can.</p>
    <div class="actions"><button class="danger" onClick=${run}>Delete</button>
      <button class="danger" onClick=${purge} title="Also from free pages of the database file and from backups of the store">Purge every trace</button>
      <button onClick=${onClose}>Cancel</button></div><//>`;
}

function Editor({ node, reload }) {
  const close = () => setQuery({ edit: "" }, { replace: true });
  const submit = async (event) => {
    event.preventDefault();
    const fields = event.target.elements;
    const at = `/memories/${encodeURIComponent(node.id)}`;
    const content = fields.content.value;
    const tags = fields.tags.value.split(",").map((one) => one.trim()).filter(Boolean);
    const add = tags.filter((one) => !node.tags.includes(one));
    const remove = node.tags.filter((one) => !tags.includes(one));
    const done = await act("Saved. The old text stays in the history.", async () => {
      if (content !== node.content) await api("PUT", at, { content });
      if (add.length || remove.length) await post(`${at}/tags`, { add, remove });
      return true;
    }, { after: reload, undo: async () => {
      if (content !== node.content) await api("PUT", at, { content: node.content });
      if (add.length || remove.length) await post(`${at}/tags`, { add: remove, remove: add });
    } });
    if (done) close();
  };
  return html`<form class="form" onSubmit=${submit}>
    <label class="field"><span>Text</span><textarea name="content" rows="6" dir="auto" required defaultValue=${node.content}></textarea></label>
    <label class="field"><span>Tags, with commas</span><input name="tags" value=${node.tags.join(", ")} /></label>
    <div class="actions"><button class="primary">Save</button><button type="button" onClick=${close}>Cancel</button></div></form>`;
}

function Fading({ id, node }) {
  const from = useData((signal) => get(`/memories/${encodeURIComponent(id)}/state`, { curve: true }, { signal }), [id, node.updatedAt, node.reps]);
  const history = useData((signal) => get(`/memories/${encodeURIComponent(id)}/history`, {}, { signal, quiet: true }), [id, node.updatedAt, node.reps]);
  return html`<${Panel} title="How it fades">
    <${Loaded} from=${from} rows=${10}>${(state) => {
      const points = state.curve.map((one) => [new Date(one.at).getTime(), one.retrieval]);
      const reviews = (history.data?.events ?? []).filter(isReview);
      const start = Math.min(points[0][0], ...reviews.map((one) => new Date(one.at).getTime()));
      const end = points.at(-1)[0];
      const now = Date.now();
      return html`
        <p class="note">${state.description} Retrievability now ${percent(state.components.retrieval, 1)}, retention ${percent(state.components.retention, 1)}.</p>
        <${Curve} label=${`Forgetting curve: ${percent(points[0][1])} at ${day(start)}, ${percent(points.at(-1)[1])} at ${day(end)}`} points=${points}
          bounds=${{ x: [start, end], y: [0, 1] }} levels=${FRACTIONS}
          ticks=${[{ at: start, text: day(start), anchor: "start" }, { at: now, text: "now" }, { at: end, text: day(end), anchor: "end" }]}
          marks=${[{ at: now, text: "now" }, ...(node.nextReview && new Date(node.nextReview).getTime() < end && new Date(node.nextReview).getTime() > start ? [{ at: new Date(node.nextReview).getTime(), text: `next review ${day(node.nextReview)}`, label: "review due", tone: "next" }] : [])]}
          dots=${reviews.map((one) => ({ at: [new Date(one.at).getTime(), 1], text: `review: ${one.details.evidence}, ${when(one.at)}` }))} />
        ${reviews.length > 0 && html`<p class="note">${many(reviews.length, "review")}, each a circle; the curve begins with the last recall.</p>`}
        ${state.transitions.length > 0 && html`<h3>Changes of state</h3><ul class="plain rows">${state.transitions.map((one) => html`<li class="change"><span class="change-kind">${words(one.reason)}</span><span class="change-what">${one.before} → ${one.after}</span><${Time} at=${one.at} /></li>`)}</ul>`}`;
    }}<//>
    ${may("write") && html`<div class="actions" role="group" aria-label="Review"><span class="muted">Review:</span>${RATINGS.map((name, index) => html`<button onClick=${() => act((answer) => answer.message, () => post(`/memories/${encodeURIComponent(id)}/reviews`, { rating: index + 1 }), { after: from.reload })}>${name}</button>`)}</div>`}
  <//>`;
}

function Diff({ before, after }) {
  return html`<div class="diff memory-text" dir="auto">${diff(before, after).map((part) => part.kind === "same" ? html`<span>${part.text}</span>`
    : part.kind === "gone" ? html`<del>${part.text}</del>` : html`<ins>${part.text}</ins>`)}</div>`;
}

const isReview = (one) => one.kind === "memory.remarked" && RATINGS.includes(one.details.evidence);
const PLACES = 3;

// What the log keeps of an event, as words: "rating good · retention 0.43 → 0.61".
function Details({ of }) {
  const some = ([, value]) => value !== null && value !== "" && !(typeof value === "object" && !Object.keys(value).length);
  const shown = (value) => (typeof value === "number" ? Number(value.toFixed(PLACES)) : Array.isArray(value) ? value.map(shown).join(", ") : value && typeof value === "object" ? all(value).join(", ") : String(value).replaceAll("_", " "));
  const all = (value) => Object.entries(value).filter(some).map(([name, one]) => `${words(name)} ${shown(one)}`);
  const parts = all(of);
  return parts.length ? html`<bdi title=${parts.join(" · ")}>${parts.join(" · ")}</bdi>` : html`<span class="muted">–</span>`;
}

function History({ id, node }) {
  const from = useData((signal) => get(`/memories/${encodeURIComponent(id)}/history`, {}, { signal }), [id, node.updatedAt, node.revision]);
  return html`<${Panel} title="Revisions">
    <${Loaded} from=${from}>${(history) => {
      const all = [...history.revisions, { revision: node.revision, content: node.content, tags: node.tags, scope: node.scope, recordedAt: node.updatedAt }];
      return html`<ol class="plain revisions">${all.map((one, index) => ({ one, before: all[index - 1] })).reverse().map(({ one, before }) => html`<li>
        <p class="revision-head"><strong>#${one.revision}</strong> <${Time} at=${one.recordedAt} /> ${before ? html`<${Badge}>${words(before.endedBy ?? "changed")}<//>` : html`<${Badge}>created<//>`}</p>
        ${before && before.scope !== one.scope && html`<p class="note">From <code>${before.scope}</code> to <code>${one.scope}</code>.</p>`}
        ${before && before.content !== one.content ? html`<${Diff} before=${before.content} after=${one.content} />` : before ? html`<p class="note">The text stayed the same.</p>` : html`<${MemoryText} text=${one.content} />`}</li>`)}</ol>
        <details><summary>${many(history.totalEvents, "event")}</summary><ul class="plain rows">${[...history.events].reverse().map((one) => html`<li class="change"><span class="change-kind">${isReview(one) ? "review" : one.kind === "memory.remarked" ? "strength" : words(one.kind.replace("memory.", ""))}</span><span class="change-what"><${Details} of=${one.details} /></span><${Time} at=${one.at} /></li>`)}</ul></details>`;
    }}<//><//>`;
}

// Lines of code that it is about, as its metadata keep them.
function cited({ metadata }) {
  return Array.isArray(metadata?.citations) ? metadata.citations.filter((one) => typeof one?.path === "string") : [];
}

function Citation({ one }) {
  const at = Number.isNaN(Date.parse(one.verified_at)) ? null : one.verified_at;
  const lines = [one.start, one.end].filter(Number.isInteger).join("–");
  return html`<li><code>${one.path}${lines && `:${lines}`}</code>${one.symbol ? ` ${one.symbol}` : ""}${at && html` <span class="muted">unchanged <${Time} at=${at} /></span>`}</li>`;
}

function Links({ id }) {
  const from = useData((signal) => get("/connections/associations", { from: id, limit: 50 }, { signal }), [id]);
  const [depth, setDepth] = useState(1);
  return html`<${Panel} title="Around it" extra=${html`<label class="check">depth <input type="range" min="1" max="3" value=${depth} onInput=${(event) => setDepth(Number(event.target.value))} aria-label="Depth of the graph" /> ${depth}</label>`}>
    <${Graph} center=${id} depth=${depth} />
    <${Loaded} from=${from}>${({ associations, total }) => associations.length ? html`<ul class="plain rows">${associations.map((one) => html`<li class="memory-row"><${Badge}>${words(one.type)}<//><span class="num" title="weight">${one.weight.toFixed(2)}</span>
        <${MemoryLink} id=${one.memory.id} text=${one.memory.preview} />
        ${may("write") && html`<button class="quiet" aria-label="Remove the link" onClick=${() => act("The link is removed.", () => api("DELETE", `/memories/${encodeURIComponent(id)}/links/${encodeURIComponent(one.memory.id)}`, {}), { after: from.reload, undo: () => post(`/memories/${encodeURIComponent(id)}/links`, { target: one.memory.id, weight: one.weight }) })}>✕</button>`}</li>`)}</ul>
        <p class="note"><${Link} to="/activation" query=${{ from: id }}>Find a path from here<//></p>` : html`<p class="note">It has no links.</p>`}<//><//>`;
}

function Domains({ id }) {
  const from = useData((signal) => get(`/memories/${encodeURIComponent(id)}/domains`, {}, { signal }), [id]);
  return html`<${Panel} title="Domains"><${Loaded} from=${from}>${({ scores }) => scores.length
    ? html`<ul class="plain rows">${scores.map((one) => html`<li class="domain-row"><${Link} to=${`/domains/${encodeURIComponent(one.domain)}`}>${topicName(one)}<//>
      ${one.member ? html`<${Badge} tone="good">${one.byHand ? "by hand" : "member"}<//>` : html`<span></span>`}
      <span class="range" aria-hidden="true"><span class="range-members" style=${{ left: percent(one.low), width: percent(Math.max(0, one.high - one.low)) }}></span><span class="range-at" style=${{ left: percent(one.score) }}></span></span>
      <span class="num" title=${one.line}>${score(one.score)}</span></li>`)}</ul>` : html`<p class="note">There are no domains yet.</p>`}<//><//>`;
}

export function Memory({ id, query }) {
  const from = useData((signal) => get(`/memories/${encodeURIComponent(id)}`, {}, { signal }), [id]);
  useLive(["MemoryUpdated", "MemoryPromoted", "MemoryDemoted", "MemorySuppressed", "MemoryUnsuppressed"], from.reload);
  const node = from.data?.node;
  return html`<${Page} wide title=${node ? clip(node.content, 120) : "Memory"} twin=${`/api/v1/memories/${encodeURIComponent(id)}`} actions=${node && html`<${Actions} node=${node} reload=${from.reload} />`}>
    <${Loaded} from=${from} rows=${6}>${() => html`<div class="grid memory-grid">
      <div class="stack">
        <${Panel} title="Text" extra=${html`<${TypeMark} type=${node.nodeType} /> <${Badge}>${node.state}<//> ${node.pinned ? html`<${Badge} tone="good">pinned<//>` : null} ${node.suppressionCount ? html`<${Badge} tone="warn">suppressed<//>` : null} ${node.ended ? html`<${Badge} tone="warn">ended<//>` : null}`}>
          ${query.edit && may("write") ? html`<${Editor} node=${node} reload=${from.reload} />` : html`<${MemoryText} text=${node.content} /><${Tags} tags=${node.tags} />`}
          ${node.phrasings.length > 0 && html`<details><summary>Also said as</summary><ul>${node.phrasings.map((one) => html`<li><bdi>${one}</bdi></li>`)}</ul></details>`}
        <//>
        <${Fading} id=${id} node=${node} />
        <${History} id=${id} node=${node} />
      </div>
      <div class="stack">
        <${Panel} title="Provenance"><${Facts} rows=${[
          ["Id", html`<code>${node.id}</code>`], ["Source", node.source && html`<${Link} to="/memories" query=${{ source: node.source }}>${node.source}<//>`],
          ["Agent", node.agentId], ["Session", node.sessionId && html`<${Link} to="/memories" query=${{ session: node.sessionId }}>${node.sessionId}<//>`], ["Author", node.author], ["Thread", node.thread],
          ["Scope", html`<${Link} to="/memories" query=${{ scope: node.scope }}>${node.scope}<//>`],
          ["Written", html`<${Time} at=${node.createdAt} />`], ["Changed", html`<${Time} at=${node.updatedAt} /> · revision ${node.revision}`],
          ["True from", node.validFrom && when(node.validFrom)], ["True until", node.validUntil && when(node.validUntil)],
          ["Replaced by", node.supersededBy && html`<${MemoryLink} id=${node.supersededBy} />`],
          ["Cites", cited(node).length ? html`<ul class="plain">${cited(node).map((one) => html`<${Citation} one=${one} />`)}</ul>` : null],
        ]} /><//>
        <${Panel} title="Strength"><${Facts} rows=${[
          ["Retention", html`<${Meter} value=${node.retentionStrength} />`], ["Retrievability", percent(node.retrievalStrength, 1)],
          ["Storage", node.storageStrength.toFixed(2)], ["Accessibility", percent(node.accessibility, 1)], ["Stability", `${node.stability.toFixed(1)} days`],
          ["Difficulty", node.difficulty.toFixed(1)], ["Reviews", `${number(node.reps)} · ${many(node.lapses, "lapse")}`], ["Next review", html`${new Date(node.nextReview) < new Date() ? "was due " : ""}<${Time} at=${node.nextReview} />`],
          ["Last access", html`<${Time} at=${node.lastAccessed} />`], ["Shown", `${many(node.timesRetrieved, "time")}, useful ${number(node.timesUseful)}`],
        ]} /><//>
        <${Links} id=${id} /><${Domains} id=${id} />
      </div></div>`}<//>
  <//>`;
}
