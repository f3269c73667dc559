// The local graph around a memory: positions come from the server; drawn as SVG, with links to walk along.

import { address, clip, get, html, route, useData, words } from "./lib.js";
import { Loaded } from "./ui.js";

const MOST_NODES = 40;
const [WIDTH, HEIGHT] = [330, 300]; // about what it has on the page, in pixels

const LETTER = 5.6;
const LINE = 13;

// Below each memory or above it, wherever no other label is; what fits in neither place has only its title.
function labelled(nodes, grown) {
  const taken = [];
  return nodes.map((one) => {
    const text = clip(one.label, 20);
    const half = (LETTER * text.length * grown) / 2;
    const at = [one.y + 22 * grown, one.y - 15 * grown].find((y) => !taken.some((other) => Math.abs(other.x - one.x) < other.half + half && Math.abs(other.y - y) < LINE * grown));
    if (at !== undefined) taken.push({ x: one.x, y: at, half });
    return { one, text, at };
  });
}

export function Graph({ center, depth }) {
  const from = useData((signal) => get("/graph", { center_id: center, depth, max_nodes: MOST_NODES }, { signal }), [center, depth]);
  return html`<${Loaded} from=${from}>${({ nodes, edges }) => {
    if (nodes.length < 2) return null;
    const at = Object.fromEntries(nodes.map((one) => [one.id, one]));
    const xs = nodes.map((one) => one.x);
    const ys = nodes.map((one) => one.y);
    const [wide, high] = [110, 46];
    const box = [Math.min(...xs) - wide, Math.min(...ys) - high, Math.max(...xs) - Math.min(...xs) + 2 * wide, Math.max(...ys) - Math.min(...ys) + 2 * high];
    const grown = Math.max(1, box[2] / WIDTH, box[3] / HEIGHT); // a wide drawing is scaled down: letters and dots are not
    return html`<svg class="graph" viewBox=${box.join(" ")} role="group" aria-label=${`${nodes.length} linked memories`}>
      ${edges.map((one) => at[one.source] && at[one.target] && html`<line x1=${at[one.source].x} y1=${at[one.source].y} x2=${at[one.target].x} y2=${at[one.target].y} stroke-opacity=${Math.min(0.8, 0.25 + 0.5 * one.weight)}><title>${words(one.type)} ${one.weight.toFixed(2)}</title></line>`)}
      ${labelled(nodes, grown).map(({ one, text, at: below }) => html`<a href=${address(`/memories/${one.id}`, { as_of: route.value.query.as_of })} aria-label=${clip(one.label, 80)}>
        <circle class=${`node mark-${one.type} ${one.isCenter ? "center" : ""}`} cx=${one.x} cy=${one.y} r=${grown * (one.isCenter ? 10 : 4 + 4 * one.retention)}><title>${one.label}</title></circle>
        ${below !== undefined && html`<text x=${one.x} y=${below} text-anchor="middle" style=${{ fontSize: `${11 * grown}px` }}>${text}</text>`}</a>`)}</svg>`;
  }}<//>`;
}
