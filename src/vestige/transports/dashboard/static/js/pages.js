// The pages: their addresses, titles, keys and groups; those with `past` follow the time machine.

import { Activation, Importance } from "./pages/importance.js";
import { Contradictions, Duplicates } from "./pages/pairs.js";
import { Decisions } from "./pages/decisions.js";
import { Domain, Domains } from "./pages/domains.js";
import { Dreams, Schedule } from "./pages/sleep.js";
import { Feed, Timeline } from "./pages/time.js";
import { Home } from "./pages/home.js";
import { Inbox } from "./pages/inbox.js";
import { Intentions } from "./pages/intentions.js";
import { Memories } from "./pages/memories.js";
import { Memory } from "./pages/memory.js";
import { Operate } from "./pages/operate.js";
import { Projects } from "./pages/projects.js";
import { Search } from "./pages/search.js";
import { Session } from "./pages/session.js";
import { SemanticMap } from "./pages/map.js";
import { Sessions } from "./pages/sessions.js";
import { Settings } from "./pages/settings.js";
import { Trace } from "./pages/trace.js";

export const NAV = [
  { path: "/", title: "Home", key: "h", group: "Today", component: Home },
  { path: "/inbox", title: "Inbox", key: "b", group: "Today", component: Inbox },
  { path: "/session", title: "Next session", key: "w", group: "Today", component: Session },
  { path: "/intentions", title: "Intentions", key: "i", group: "Today", component: Intentions },
  { path: "/search", title: "Search", key: "r", group: "Find", component: Search, past: true },
  { path: "/memories", title: "Memories", key: "m", group: "Find", component: Memories, past: true },
  { path: "/timeline", title: "Timeline", key: "t", group: "Find", component: Timeline, past: true },
  { path: "/map", title: "Map", key: "g", group: "Find", component: SemanticMap },
  { path: "/decisions", title: "Decisions", key: "n", group: "Find", component: Decisions },
  { path: "/projects", title: "Projects", key: "v", group: "Find", component: Projects },
  { path: "/sessions", title: "Sessions", key: "z", group: "Find", component: Sessions },
  { path: "/trace", title: "Trace a text", key: "l", group: "Find", component: Trace },
  { path: "/contradictions", title: "Contradictions", key: "x", group: "Care", component: Contradictions, past: true },
  { path: "/duplicates", title: "Duplicates", key: "u", group: "Care", component: Duplicates },
  { path: "/domains", title: "Domains", key: "o", group: "Care", component: Domains },
  { path: "/schedule", title: "Schedule", key: "c", group: "Care", component: Schedule },
  { path: "/dreams", title: "Dreams", key: "d", group: "Mind", component: Dreams },
  { path: "/activation", title: "Activation", key: "a", group: "Mind", component: Activation },
  { path: "/importance", title: "Importance", key: "p", group: "Mind", component: Importance },
  { path: "/feed", title: "Live feed", key: "f", group: "System", component: Feed },
  { path: "/operate", title: "Operate", key: "s", group: "System", component: Operate },
  { path: "/settings", title: "Settings", key: ",", group: "System", component: Settings },
];

const BELOW = { "/memories/": Memory, "/domains/": Domain };

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The page of an address, and the entry of the navigation that it belongs to.
export function pageOf(path) {
  const nav = NAV.find((one) => one.path === path);
  if (nav) return { nav, component: nav.component };
  for (const [prefix, component] of Object.entries(BELOW)) {
    const rest = path.slice(prefix.length);
    if (path.startsWith(prefix) && rest && !rest.includes("/")) {
      return { nav: NAV.find((one) => one.path === prefix.slice(0, -1)), component, id: decoded(rest) };
    }
  }
  return null;
}
