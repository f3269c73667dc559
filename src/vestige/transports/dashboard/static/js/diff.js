// The difference of two texts, in words: [{ kind: "same" | "gone" | "new", text }].

const MOST_CELLS = 400_000;

function tokens(text) {
  return text.match(/\s+|[^\s]+/g) ?? [];
}

export function diff(before, after) {
  const old = tokens(before);
  const now = tokens(after);
  let start = 0;
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  let end = 0;
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1;
  const parts = [];
  add(parts, "same", old.slice(0, start));
  middle(parts, old.slice(start, old.length - end), now.slice(start, now.length - end));
  add(parts, "same", end ? old.slice(-end) : []);
  return parts;
}

function add(parts, kind, list) {
  if (!list.length) return;
  const last = parts.at(-1);
  if (last?.kind === kind) last.text += list.join("");
  else parts.push({ kind, text: list.join("") });
}

function middle(parts, old, now) {
  if (old.length * now.length > MOST_CELLS || !old.length || !now.length) {
    add(parts, "gone", old);
    add(parts, "new", now);
    return;
  }
  // The longest common subsequence, from the end.
  const width = now.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = old[i] === now[j]
        ? longest[(i + 1) * width + j + 1] + 1
        : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      add(parts, "same", [old[i]]);
      i += 1;
      j += 1;
    } else if (j >= now.length || (i < old.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      add(parts, "gone", [old[i]]);
      i += 1;
    } else {
      add(parts, "new", [now[j]]);
      j += 1;
    }
  }
}
