// Contradictions and duplicates: side by side, with a plan, and a way back.

import { act, api, capital, clip, get, html, many, may, number, percent, post, setQuery, urlOf, useData, useState, words } from "../lib.js";
import { Badge, Empty, Link, Loaded, MemoryLink, MemoryText, Meter, Page, Pager, Tags, Time } from "../ui.js";
import { diff } from "../diff.js";
import { useLive } from "../live.js";

const PAGE = 20;

// Which part of a list the address names, and how to go to another.
function usePage({ offset }) {
  const at = Math.max(0, Math.floor(Number(offset) || 0));
  const move = (to) => {
    setQuery({ offset: to || "" });
    scrollTo(0, 0);
  };
  return { at, move, params: { limit: PAGE, offset: at } };
}

const Pages = ({ page, total, names }) => html`<${Pager} total=${total} offset=${page.at} limit=${PAGE} onMove=${page.move} names=${names} />`;

export const newerOf = (pair) => (pair.newer === pair.stronger.id ? pair.stronger : pair.weaker);

// The older of a pair ends when the newer begins; undo takes the end away again.
export function endOlder(pair, reload) {
  const older = pair.newer === pair.stronger.id ? pair.weaker : pair.stronger;
  const newer = newerOf(pair);
  const at = `/memories/${encodeURIComponent(older.id)}/validity`;
  return act("The older one is marked as no longer true.", () => api("PUT", at, { valid_until: newer.date }), { after: reload, undo: () => api("PUT", at, { valid_until: null }) });
}

const CONFLICTS = { polarity: "One says it, the other denies it", value: "Different values", slot: "Different values", correction: "Correction", state: "Different states" };

export function Pair({ pair, reload, buttons = true }) {
  const Side = ({ side, name }) => html`<div class="side"><p class="side-head"><${Badge} tone=${side.id === pair.newer ? "good" : ""}>${side.id === pair.newer ? "newer" : "older"}<//> <span title="From its sources, its age and how often it was confirmed">trust ${percent(side.trust)}</span> <${Time} at=${side.date} /></p>
    <${MemoryText} text=${side.preview} /><p><${MemoryLink} id=${side.id} text="Open" /></p></div>`;
  return html`<article class="panel pair"><header class="panel-head"><h2>${CONFLICTS[pair.kind] ?? capital(words(pair.kind))}</h2><span class="muted">“${pair.detail}” · ${percent(pair.topic_overlap)} of the words in common</span></header>
    <div class="sides"><${Side} side=${pair.stronger} /><${Side} side=${pair.weaker} /></div>
    ${buttons && may("write") && html`<div class="actions"><button class="primary" onClick=${() => endOlder(pair, reload)}>The newer one holds</button>
      <button onClick=${() => act("Demoted.", () => post(`/memories/${pair.newer}/demote`, { reason: "contradiction" }), { after: reload, undo: () => post(`/memories/${pair.newer}/promote`, {}) })}>The newer one is wrong</button></div>`}</article>`;
}

export function Contradictions({ query }) {
  const page = usePage(query);
  const asked = { ...page.params, as_of: query.as_of };
  const from = useData((signal) => get("/contradictions", asked, { signal }), [query.as_of, page.at]);
  useLive(["MemoryUpdated", "MemoryDeleted"], from.reload, 5000);
  return html`<${Page} title="Contradictions" lead="Pairs of memories that cannot both be true." twin=${urlOf("/contradictions", asked)}>
    <${Loaded} from=${from} note="Comparing all memories. The first time after a start of the server takes longest.">${({ contradictions, total, memoriesAnalyzed }) => total ? html`<p class="note">${many(total, "pair")} among ${number(memoriesAnalyzed)} memories, the latest first.</p>
      ${contradictions.map((pair) => html`<${Pair} key=${pair.stronger.id + pair.weaker.id} pair=${pair} reload=${from.reload} />`)}
      <${Pages} page=${page} total=${total} />` : html`<${Empty} title="No memory contradicts another.">${number(memoriesAnalyzed)} memories were compared.<//>`}<//>
  <//>`;
}

export function mergeCluster(ids, plan, reload) {
  return act("Merged.", () => post("/merges", { ids, plan_id: plan.planId }), { after: reload, undo: (answer) => post(`/merges/${answer.node.id}/undo`, {}) });
}

// A member with what it says otherwise than the first one marked.
function Member({ one, first }) {
  const text = clip(one.contentPreview);
  const parts = one === first || first.contentPreview.length > MOST_MARKED ? [{ kind: "same", text }] : diff(clip(first.contentPreview), text).filter((part) => part.kind !== "gone");
  return html`<${Link} to=${`/memories/${encodeURIComponent(one.id)}`} class="memory-link otherwise"><bdi>${parts.map((part) => (part.kind === "same" ? part.text : html`<ins>${part.text}</ins>`))}</bdi><//>`;
}
const MOST_MARKED = 2000;

export function Cluster({ cluster, reload, buttons = true }) {
  const [plan, setPlan] = useState(null);
  const ids = cluster.members.map((one) => one.id);
  const show = () => act("This is the plan; nothing has changed yet.", () => get("/duplicates/plan", { ids })).then(setPlan);
  return html`<article class="panel pair"><header class="panel-head"><h2>${number(cluster.size)} memories ${cluster.reasons?.length ? "are alike" : "say the same"}</h2><span class="muted"><${Badge} tone=${cluster.suggestedAction === "merge" ? "good" : "warn"}>${cluster.suggestedAction === "merge" ? "can be merged" : "look first"}<//> similarity ${percent(cluster.mergeScore)}</span></header>
    ${cluster.reasons?.length ? html`<p class="note">They may contradict each other.</p>` : null}
    <ul class="plain rows">${cluster.members.map((one) => html`<li class="memory-row"><span class="num share" title="Similarity to the first">${percent(one.similarityToAnchor)}</span><${Member} one=${one} first=${cluster.members[0]} /><${Meter} value=${one.retention} /><${Time} at=${one.createdAt} /></li>`)}</ul>
    ${buttons && may("write") && (plan ? html`<div class="plan"><h3>Becomes</h3><${MemoryText} text=${plan.content} /><${Tags} tags=${plan.tags} />
      <div class="actions"><button class="primary" onClick=${() => mergeCluster(ids, plan, reload)}>Merge</button><button onClick=${() => setPlan(null)}>Cancel</button></div></div>`
      : html`<div class="actions"><button onClick=${show}>Plan a merge</button></div>`)}</article>`;
}

export function Duplicates({ query }) {
  const page = usePage(query);
  const from = useData((signal) => get("/duplicates", page.params, { signal }), [page.at]);
  useLive(["MemoryUpdated", "MemoryDeleted"], from.reload, 5000);
  return html`<${Page} title="Duplicates" lead="Memories that say the same. A merge keeps every wording and can be undone." twin=${urlOf("/duplicates", page.params)}>
    <${Loaded} from=${from} note="Comparing all memories.">${({ clusters, totalClusters, memoriesAnalyzed }) => totalClusters ? html`<p class="note">${many(totalClusters, "group")} among ${number(memoriesAnalyzed)} memories, what merges best first.</p>
      ${clusters.map((one) => html`<${Cluster} key=${one.clusterId} cluster=${one} reload=${from.reload} />`)}
      <${Pages} page=${page} total=${totalClusters} names=${["Back", "More"]} />` : html`<${Empty} title="No two memories say the same.">${number(memoriesAnalyzed)} memories were compared.<//>`}<//>
  <//>`;
}
