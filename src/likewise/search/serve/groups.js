// Groups of the collection: near-duplicates and clusters.
import { ask } from "./ask.js";
import { Grid, make, number } from "./grid.js";

const $ = (id) => document.getElementById(id);
const FIRST = 12; // pictures of a group that are shown at first
const several = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

const addressOf = (current, more) => {
  const parameters = new URLSearchParams(current.kind === "clusters" ? { n: current.n } : { threshold: current.threshold });
  if (current.kind === "duplicates" && current.where) parameters.set("where", current.where);
  for (const [name, value] of Object.entries(more)) parameters.set(name, value);
  return `/api/${current.kind}?${parameters}`;
};

const titles = {
  duplicates: (group) => `${number(group.size)} similar pictures`,
  clusters: (group) => `${several(group.size, "picture")}${group.label === null ? "" : `, mostly ${group.label}`}`,
};

const section = (group, place, current, uses, most) => {
  const [whole, list] = [make("section", "group"), make("ol", "grid")];
  const grid = new Grid(list);
  grid.fill(group.items, uses);
  whole.append(make("h2", "", titles[current.kind](group)), list);
  if (group.size <= group.items.length) return whole;
  const all = make("button", "", `Show ${group.size > most ? `${number(most)} of` : "all"} ${number(group.size)}`);
  all.type = "button";
  all.addEventListener("click", async () => {
    const answer = await ask(addressOf(current, { offset: place, limit: 1, each: most }));
    grid.fill(answer.groups[0].items, uses);
    all.remove();
  });
  whole.append(all);
  return whole;
};

// Show groups from an offset; return the total number and the number of shown ones.
export const renderGroups = async (current, about, uses, offset, signal) => {
  const answer = await ask(addressOf(current, { offset, each: FIRST }), { signal });
  const made = answer.groups.map((group, place) => section(group, offset + place, current, uses, about.limits.page));
  if (offset) $("groups").append(...made);
  else $("groups").replaceChildren(...made);
  if (offset) made[0]?.querySelector("a")?.focus();
  const alike = Number(current.threshold).toFixed(3).replace(/0$/, "");
  if (current.kind === "clusters") $("headline").textContent = `The collection in ${several(answer.total, "cluster")}`;
  else if (answer.total) $("headline").textContent = `${several(answer.total, "group")} of near-duplicates`;
  else $("headline").textContent = `No two pictures have a similarity of ${alike} or more`;
  $("timing").textContent =
    current.kind === "clusters"
      ? "by k-means on the embeddings; the largest first"
      : answer.total ? `${number(answer.members)} pictures have a near-duplicate` : "Move the slider to the left to find less similar pictures.";
  return { total: answer.total, shown: offset + made.length };
};
