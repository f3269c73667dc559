// The map: domains as islands, memories around them. Positions come from the server and stay between visits.

import { address, clip, get, go, html, many, number, percent, route, seesAll, setQuery, useData, useEffect, useMemo, useRef, useState, words } from "../lib.js";
import { Badge, Choice, Empty, Link, Loaded, MemoryLink, Meter, Page, Panel, topicName, TypeMark, TYPES } from "../ui.js";
import { Canvas } from "../canvas.js";

const MOST_NODES = 2000;

export function SemanticMap({ query }) {
  const sees = seesAll();
  const from = useData((signal) => !sees ? Promise.resolve(undefined) : get("/domains/map", { limit: MOST_NODES, domain: query.domain }, { signal }), [query.domain]);
  const [chosen, setChosen] = useState(null);
  const linked = useLinks(chosen, from.data?.nodes);
  return html`<${Page} title="Map" lead="Topics as islands; the nearer two memories are, the more they have in common. Places stay the same from visit to visit." twin=${sees ? `/api/v1/domains/map?limit=${MOST_NODES}` : null}>
    ${!sees ? html`<${Empty} title="Your key does not see the map.">It places all memories, and your key sees some of them.<//>` : html`<${Loaded} from=${from} rows=${8}>${({ islands, nodes, total }) => nodes.length ? html`
      <div class="map"><${Canvas} islands=${islands} nodes=${nodes} chosen=${chosen} links=${linked} onChoose=${setChosen} />
        <aside class="map-side"><${Panel} title=${chosen ? "Memory" : "Islands"}>
          ${chosen ? html`<p><${TypeMark} type=${chosen.type} /> <${MemoryLink} id=${chosen.id} text=${chosen.label} /></p><p><${Meter} value=${chosen.retention} /></p><${Linked} linked=${linked} onChoose=${setChosen} /><${Near} node=${chosen} nodes=${nodes} onChoose=${setChosen} /><div class="actions"><button class="quiet" onClick=${() => setChosen(null)}>Back to the islands</button></div>`
            : html`<ul class="plain rows">${[...islands].sort((a, b) => b.memories - a.memories).map((one) => html`<li class="row-link"><button class="linkish" onClick=${() => setQuery({ domain: one.domain ?? "" })}>${topicName(one)}</button><strong>${number(one.memories)}</strong></li>`)}</ul>${islands.reduce((sum, one) => sum + one.memories, 0) > total ? html`<p class="note">A memory can be in several topics; it is drawn on the one that it fits best.</p>` : null}${query.domain && html`<div class="actions"><button onClick=${() => setQuery({ domain: "" })}>All islands</button></div>`}`}<//>
          <p class="legend-types">${Object.keys(TYPES).filter((type) => nodes.some((one) => one.type === type)).map((type) => html`<span><i class=${`dot-type mark-${type}`} aria-hidden="true"></i>${type}</span>`)}</p><p class="note">A larger dot is better remembered.${nodes.some((one) => !one.domain) && islands.some((one) => one.domain) ? " What lies outside of the islands belongs to no topic yet, and is beside the nearest one." : ""} ${many(nodes.length, "memory", "memories")}${nodes.length < total ? ` of ${number(total)}, the strongest` : ""}. Drag to move, scroll to zoom. Arrow keys go to the next memory, Enter opens it.</p></aside></div>
      <details><summary>The map as a list</summary>${grouped(islands, nodes).map(({ label, members }) => html`<h3>${label} <span class="muted">${number(members.length)}</span></h3><ul class="plain rows">${members.slice(0, MOST_LISTED).map((one) => html`<li class="memory-row"><${TypeMark} type=${one.type} /><${MemoryLink} id=${one.id} text=${one.label} /><${Meter} value=${one.retention} /></li>`)}</ul>${members.length > MOST_LISTED ? html`<p class="note">and ${number(members.length - MOST_LISTED)} more</p>` : null}`)}</details>` : html`<${Empty} title="There is nothing to draw yet.">The map shows memories that have vectors.<//>`}<//>`}<//>`;
}

const NONE = [];
const MOST_LISTED = 50;

// The memories of each island, and those of none.
function grouped(islands, nodes) {
  const groups = islands.map((island) => ({ label: topicName(island), members: nodes.filter((one) => (one.domain ?? null) === (island.domain ?? null)) }));
  const outside = islands.some((one) => one.domain) ? nodes.filter((one) => !one.domain) : [];
  return outside.length ? [...groups, { label: "In no topic", members: outside }] : groups;
}

// The links of a memory to others that are on the map.
function useLinks(chosen, nodes) {
  const from = useData((signal) => (chosen ? get("/connections/associations", { from: chosen.id, limit: 50 }, { signal, quiet: true }) : Promise.resolve(null)), [chosen?.id]);
  return useMemo(() => {
    if (!chosen || !nodes || !from.data) return NONE;
    const known = new Map(nodes.map((one) => [one.id, one]));
    return from.data.associations.filter((one) => known.has(one.memory.id)).map((one) => ({ node: known.get(one.memory.id), weight: one.weight, type: one.type }));
  }, [chosen, nodes, from.data]);
}

function Linked({ linked, onChoose }) {
  return linked.length ? html`<h3>Linked</h3><ul class="plain rows">${linked.slice(0, 8).map(({ node, weight, type }) => html`<li class="memory-row"><button class="linkish" onClick=${() => onChoose(node)}><bdi>${clip(node.label, 60)}</bdi></button><span class="num" title=${words(type)}>${weight.toFixed(2)}</span></li>`)}</ul>` : null;
}

function Near({ node, nodes, onChoose }) {
  const near = nodes.filter((one) => one.id !== node.id).map((one) => ({ one, far: (one.x - node.x) ** 2 + (one.y - node.y) ** 2 })).sort((a, b) => a.far - b.far).slice(0, 6);
  return html`<h3>Nearby</h3><ul class="plain rows">${near.map(({ one }) => html`<li class="memory-row"><button class="linkish" onClick=${() => onChoose(one)}><bdi>${clip(one.label, 60)}</bdi></button></li>`)}</ul>`;
}
