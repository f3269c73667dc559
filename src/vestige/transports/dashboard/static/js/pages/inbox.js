// The inbox: everything that waits for a person, one after another, with keys and undo.

import { act, api, capital, get, go, html, many, may, notify, number, post, seesAll, urlOf, useData, useEffect, useRef, useState, words } from "../lib.js";
import { Badge, Empty, Failed, Link, Loaded, Loading, MemoryLink, Page } from "../ui.js";
import { Cluster, endOlder, mergeCluster, newerOf, Pair } from "./pairs.js";
import { acceptProposal, NO_PROPOSALS, Proposal, rejectProposal } from "./domains.js";
import { useLive } from "../live.js";

const FIRST = 50;

// What waits, by kind, in the order of the list. A kind appears once those before it are known: nothing slips in
// above what a person is about to decide.
const KINDS = [
  { kind: "proposed memory", path: "/review", list: (answer) => answer.texts, total: (answer) => answer.total, key: (one) => one.id },
  { kind: "contradiction", path: "/contradictions", list: (answer) => answer.contradictions, total: (answer) => answer.total, key: (one) => `${one.stronger.id} ${one.weaker.id}` },
  { kind: "domain proposal", path: "/domains/proposals", none: NO_PROPOSALS, list: (answer) => answer.proposals, key: (one) => one.id },
  { kind: "duplicates", path: "/duplicates", list: (answer) => answer.clusters, left: (one) => !apart().includes(one.clusterId), total: (answer) => answer.totalClusters, key: (one) => one.clusterId },
  { kind: "insight", path: "/insights", list: (answer) => answer.insights, key: (one) => one.id },
];

function useWaiting() {
  const all = KINDS.map(({ path, none }) => useData((signal) => none && !seesAll() ? Promise.resolve(none) : get(path, path === "/domains/proposals" ? {} : { limit: FIRST }, { signal }), []));
  const known = useRef(0);
  while (known.current < all.length && !(all[known.current].loading && all[known.current].data === null)) known.current += 1;
  return {
    items: KINDS.slice(0, known.current).flatMap(({ kind, list, key, left = () => true }, index) => (all[index].data ? list(all[index].data) : []).filter(left).map((value) => ({ kind, key: `${kind} ${key(value)}`, value }))),
    more: KINDS.reduce((sum, { list, total }, index) => sum + (total && all[index].data ? total(all[index].data) - list(all[index].data).length : 0), 0),
    loading: all.some((one) => one.loading && one.data === null),
    failed: all.every((one) => one.error) ? all[0].error : null,
    reload: () => all.forEach((one) => one.reload()),
  };
}

// Groups of alike memories that a person wants to keep apart. A dashboard without them would ask at every visit.
const APART = "vestige-apart";
const MOST_APART = 500;
const apart = () => JSON.parse(localStorage.getItem(APART) ?? "[]");
const setApart = (ids) => localStorage.setItem(APART, JSON.stringify(ids.slice(-MOST_APART)));

function keepApart({ clusterId }, reload) {
  setApart([...apart(), clusterId]);
  reload();
  notify("Both are kept: this browser does not ask about them again.", { undo: () => { setApart(apart().filter((one) => one !== clusterId)); reload(); } });
}

const decideText = (one, what, done, reload) => act(done, () => post(`/review/${one.id}/${what}`, {}), { after: reload, undo: () => post(`/review/${one.id}/undo`, {}) });

const HANDLERS = {
  "proposed memory": {
    accept: (one, reload) => decideText(one, "approve", "Approved.", reload),
    reject: (one, reload) => decideText(one, "reject", "Rejected: it stays out of every search.", reload),
    open: () => editWaiting(),
    names: ["Approve", "Reject"],
  },
  contradiction: {
    accept: (one, reload) => endOlder(one, reload),
    reject: (one, reload) => act("Demoted the newer one.", () => post(`/memories/${one.newer}/demote`, {}), { after: reload, undo: () => post(`/memories/${one.newer}/promote`, {}) }),
    open: (one) => go(`/memories/${one.newer}`),
    names: ["The newer one holds", "The newer one is wrong"],
  },
  duplicates: {
    accept: async (one, reload) => {
      const ids = one.members.map((member) => member.id);
      const plan = await get("/duplicates/plan", { ids });
      return mergeCluster(ids, plan, reload);
    },
    reject: keepApart,
    open: (one) => go(`/memories/${one.members[0].id}`),
    names: ["Merge", "Keep both"],
  },
  "domain proposal": { accept: (one, reload) => acceptProposal(one, reload), reject: (one, reload) => rejectProposal(one, reload), open: () => go("/domains"), names: ["Accept", "Reject"] },
  insight: {
    accept: (one, reload) => act("Kept as a memory.", () => post("/memories", { content: one.insight, node_type: "concept", tags: ["insight"], source: "dream" }), { after: reload, undo: (answer) => api("DELETE", `/memories/${answer.nodeId}`, {}) }),
    reject: (one, reload) => act("Dismissed: no dream draws it again.", () => api("DELETE", `/insights/${one.id}`, {}), { after: reload }),
    open: (one) => go(`/memories/${one.source_memories[0]}`),
    names: ["Keep as a memory", "Dismiss"],
  },
};

// The text of an insight, with a link where it names a memory.
function cited(text) {
  return text.split(/\[([0-9a-f-]{36})\]/).map((part, index) => (index % 2 ? html`<${Link} to=${`/memories/${part}`} aria-label="Source" class="cite">↗<//>` : part));
}

export function Insight({ insight, children }) {
  return html`<article class="panel pair"><header class="panel-head"><h2>${capital(words(insight.insight_type))}</h2><span class="muted">confidence ${Math.round(100 * insight.confidence)}% · novelty ${Math.round(100 * insight.novelty_score)}%</span></header>
    <div class="memory-text" dir="auto">${cited(insight.insight)}</div>
    <details><summary>${many(insight.source_memories.length, "source")}</summary><ul class="plain rows">${insight.source_memories.map((id) => html`<li><${MemoryLink} id=${id} /></li>`)}</ul></details>${children}</article>`;
}

function editWaiting() {
  const details = document.querySelector(".waiting-edit");
  if (!details) return;
  details.open = true;
  details.querySelector("textarea").focus();
}

// The list cuts long texts, but a person decides about the whole text, and an edit must not lose its end.
function Waiting({ text: listed, reload }) {
  const cut = [...listed.content].length !== listed.contentLength || listed.content.endsWith("…");
  const whole = useData((signal) => (cut ? get(`/review/${listed.id}`, {}, { signal }) : Promise.resolve(null)), [listed.id, cut, listed.content, listed.contentLength]);
  if (whole.error) return html`<${Failed} error=${whole.error} retry=${whole.reload} />`;
  const text = cut ? whole.data : listed;
  if (!text) return html`<${Loading} rows=${4} />`;
  const save = (event) => {
    event.preventDefault();
    const after = () => [whole, { reload }].forEach((one) => one.reload());
    return act("Changed.", () => api("PATCH", `/review/${text.id}`, { content: event.target.elements.content.value }), { after });
  };
  return html`<article class="panel pair"><header class="panel-head"><h2>${text.reason}</h2><span class="muted">${[text.nodeType, `from ${text.origin}`, text.scope].filter(Boolean).join(" · ")}</span></header>
    ${text.flags && html`<p class="note">May give orders to an agent: ${text.flags.join(", ")}.</p>`}
    <div class="memory-text" dir="auto">${text.content}</div>
    ${may("write") && html`<details class="waiting-edit"><summary>Edit</summary><form class="stack" onSubmit=${save}><label class="field"><span>Text</span><textarea name="content" rows="6" dir="auto" required defaultValue=${text.content}></textarea></label><button>Save</button></form></details>`}</article>`;
}

// Where the next look finds its place: at an item that is back because its decision was taken back, else at the one
// that was shown, else at what took its place in the list. `decided` are the items with a decision, and whether
// the list was without them since.
function seated(items, { decided, shown, index }) {
  const places = new Map(items.map((one, at) => [one.key, at]));
  const back = [...decided.keys()].find((key) => decided.get(key) && places.has(key));
  decided.delete(back);
  for (const key of decided.keys()) if (!places.has(key)) decided.set(key, true);
  return Math.min(places.get(back) ?? places.get(shown) ?? index, items.length - 1);
}

function Item({ item, reload }) {
  if (item.kind === "proposed memory") return html`<${Waiting} text=${item.value} reload=${reload} />`;
  if (item.kind === "contradiction") return html`<${Pair} pair=${item.value} reload=${reload} buttons=${false} />`;
  if (item.kind === "duplicates") return html`<${Cluster} cluster=${item.value} reload=${reload} buttons=${false} />`;
  if (item.kind === "insight") return html`<${Insight} insight=${item.value} />`;
  return html`<${Proposal} proposal=${item.value} />`;
}

export function Inbox() {
  const from = useWaiting();
  const seat = useRef({ decided: new Map(), shown: null, index: 0 });
  const [, redraw] = useState(0);
  const [later, setLater] = useState(new Set());
  useLive(["ReviewWaiting", "DreamCompleted", "DomainsChanged"], from.reload);
  const items = from.items.filter((one) => !later.has(one.key));
  const current = seated(items, seat.current);
  const item = items[current];
  seat.current = { ...seat.current, shown: item?.key ?? null, index: Math.max(current, 0) };
  const setAt = (index) => {
    seat.current = { ...seat.current, shown: items[index]?.key ?? null, index };
    redraw((turn) => turn + 1);
  };
  const writes = may("write");
  const skip = (one) => setLater((old) => new Set([...old, one.key]));
  const decide = (what) => {
    if (!item) return;
    const handler = HANDLERS[item.kind];
    if (what === "open") handler.open(item.value);
    else if (!writes) return;
    else if (!handler[what]) skip(item);
    else {
      seat.current.decided.set(item.key, false);
      handler[what](item.value, from.reload);
    }
  };
  const latest = useRef(null);
  latest.current = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]")) return;
    const moves = { j: () => setAt(Math.min(current + 1, items.length - 1)), k: () => setAt(Math.max(current - 1, 0)), a: () => decide("accept"), r: () => decide("reject"), e: () => decide("open"), u: () => document.querySelector(".notice button:not(.quiet)")?.click() };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };
  useEffect(() => {
    const listen = (event) => latest.current(event);
    document.addEventListener("keydown", listen, true);
    return () => document.removeEventListener("keydown", listen, true);
  }, []);
  useEffect(() => {
    document.querySelector(".inbox-list [aria-current=true]")?.scrollIntoView({ block: "nearest" });
    if (!from.loading) document.title = `${items.length ? `(${items.length}) ` : ""}Inbox · Vestige`;
  });
  return html`<${Page} title="Inbox" lead=${html`Everything that waits for you. <span class="for-keys">j and k move, a accepts, r rejects, e opens, u undoes.</span>`} twin=${urlOf("/review/waiting", { limit: FIRST })}>
    ${from.failed && html`<${Failed} error=${from.failed} retry=${from.reload} />`}
    ${items.length ? html`<div class="inbox">
      <div><ol class="plain inbox-list" aria-label="Waiting">${items.map((one, index) => html`<li key=${one.key}><button class="inbox-item" aria-current=${index === current ? "true" : null} onClick=${() => setAt(index)}><${Badge}>${one.kind}<//><bdi>${titleOf(one)}</bdi></button></li>`)}</ol>${from.more > 0 && html`<p class="note">${number(from.more)} more wait: the first ${FIRST} of a kind are listed.</p>`}${from.loading && html`<p class="note" role="status">Still comparing memories…</p>`}</div>
      <div class="inbox-detail"><p class="note">${current + 1} of ${items.length}</p><${Item} key=${item.key} item=${item} reload=${from.reload} />
        <div class="actions">${writes && html`<button class="primary" onClick=${() => decide("accept")}>${HANDLERS[item.kind].names[0]} <kbd>a</kbd></button><button onClick=${() => decide("reject")}>${HANDLERS[item.kind].names[1]} <kbd>r</kbd></button>`}
          <button onClick=${() => decide("open")}>Open <kbd>e</kbd></button><button class="quiet" onClick=${() => skip(item)}>Later</button></div></div></div>`
      : from.loading ? html`<${Loading} rows=${4} />` : html`<${Empty} title="Nothing waits for you.">Proposed memories, contradictions, duplicates, proposals of domains and insights of dreams appear here.<//>`}
    <${Policies} /><//>`;
}

const POLICIES = { off: "nothing", low_trust: "orders to agents and hidden text", all: "all that you did not write", default: "as in the settings" };

// Which texts wait, by scope; an administrator changes it here.
function Policies() {
  const from = useData((signal) => get("/review/policy", {}, { signal }), []);
  const choose = (scope, policy) => act(`Waits in ${scope}: ${POLICIES[policy]}.`, () => api("PUT", "/review/policy", { scope, policy }), { after: from.reload });
  const add = (event) => {
    event.preventDefault();
    return choose(event.target.elements.scope.value, event.target.elements.policy.value);
  };
  const options = (chosen) => Object.keys(POLICIES).filter((one) => chosen || one !== "default").map((one) => html`<option value=${one}>${words(one)}: ${POLICIES[one]}</option>`);
  return html`<details class="after policies"><summary>What waits here</summary><${Loaded} from=${from} rows=${2}>${({ policies }) => html`<table><thead><tr><th scope="col">scope</th><th scope="col">waits</th><th scope="col">from</th></tr></thead><tbody>
    ${policies.map((one) => html`<tr key=${one.scope}><th scope="row"><code>${one.scope}</code></th><td>${may("admin")
      ? html`<select aria-label=${`Waits in ${one.scope}`} value=${one.policy} onChange=${(event) => choose(one.scope, event.target.value)}>${options(one.chosen)}</select>`
      : html`${words(one.policy)}: ${POLICIES[one.policy]}`}</td><td>${one.chosen ? "chosen" : "settings"}</td></tr>`)}</tbody></table>`}<//>
    ${may("admin") && html`<form class="actions" onSubmit=${add}><input name="scope" aria-label="Another scope" placeholder="/project/name" required pattern="/.*" /><select name="policy" aria-label="Waits there">${options(false)}</select><button>Choose</button></form>`}</details>`;
}

function titleOf(item) {
  const one = item.value;
  if (item.kind === "proposed memory") return one.content;
  if (item.kind === "contradiction") return newerOf(one).preview;
  if (item.kind === "duplicates") return one.members[0].contentPreview ?? one.members[0].id;
  if (item.kind === "insight") return one.insight;
  return one.summary ?? one.kind;
}
