import { ask, Fault, sentence, show } from "./ask.js";
import { CollectionMap } from "./draw.js";
import { FilterForm } from "./filter.js";
import { breakable, filename, Grid, make, number, picture, setVersion, showFirst, thumbnail, titleOf } from "./grid.js";
import { renderGroups } from "./groups.js";
import { showOriginal } from "./original.js";
import { explain } from "./why.js";

const $ = (id) => document.getElementById(id);
const size = (file) => (file.size < 1e6 ? `${Math.ceil(file.size / 1e3)} kB` : `${(file.size / 1e6).toFixed(1)} MB`);

let about = null;
let map = null;
let mapData = null;
let uploads = new Map(); // images dropped on this page; they are stored only here
let current = { kind: "home" };
let queryItem = null; // the item that is the query
let loadMore = null; // the action of the button below the pictures
let running = new AbortController();
const grid = new Grid($("found"));

const uses = () => ({
  address: (item) => address({ kind: "item", id: item.id }),
  why: about.model ? (item) => explain(current.kind === "upload" ? uploads.get(current.id) : null, current.id, item) : null,
  original: (item) => showOriginal(item, titleOf(item)),
});

// ---------------------------------------------------------------------------------------------- address

const SORTED = ["duplicates", "clusters"];
const read = () => {
  const [path, query] = location.hash.replace(/^#/, "").split("?");
  const parameters = new URLSearchParams(query);
  const [, kind, id] = path.split("/");
  return {
    kind: (["item", "upload"].includes(kind) && /^\d+$/.test(id)) || SORTED.includes(kind) ? kind : "home",
    id: Number(id),
    where: parameters.get("where") ?? "",
    k: ["12", "24", "48", "96"].includes(parameters.get("k")) ? parameters.get("k") : "24",
    rerank: parameters.get("rerank") ?? "",
    exact: parameters.get("exact") === "true",
    threshold: Number(parameters.get("threshold")) >= 0.7 && Number(parameters.get("threshold")) <= 1 ? parameters.get("threshold") : "0.95",
    n: ["4", "8", "12", "20", "40"].includes(parameters.get("n")) ? parameters.get("n") : "12",
  };
};

const address = (change) => {
  const to = { ...current, ...change };
  const parameters = new URLSearchParams();
  if (to.where) parameters.set("where", to.where);
  if (to.k && to.k !== "24") parameters.set("k", to.k);
  if (to.rerank) parameters.set("rerank", to.rerank);
  if (to.exact) parameters.set("exact", "true");
  if (to.kind === "duplicates" && to.threshold && to.threshold !== "0.95") parameters.set("threshold", to.threshold);
  if (to.kind === "clusters" && to.n && to.n !== "12") parameters.set("n", to.n);
  const query = parameters.size ? `?${parameters}` : "";
  if (SORTED.includes(to.kind)) return `#/${to.kind}${query}`;
  return to.kind === "home" ? `#/${query}` : `#/${to.kind}/${to.id}${query}`;
};

const go = (change) => {
  const to = address(change);
  if (to === location.hash) render();
  else location.hash = to;
};

// ---------------------------------------------------------------------------------------------- results

const options = () => {
  const parameters = { k: current.k, place: "true" };
  if (current.where) parameters.where = current.where;
  if (current.rerank) parameters.rerank = current.rerank;
  if (current.exact) parameters.exact = "true";
  return parameters;
};

const search = async (signal) => {
  if (current.kind === "item") {
    const parameters = new URLSearchParams(options());
    const [item, answer] = await Promise.all([
      ask(`/api/items/${current.id}`, { signal }).then((item) => (showQuery(item), item)),
      ask(`/api/items/${current.id}/neighbors?${parameters}`, { signal }),
    ]);
    return { item, answer };
  }
  const file = uploads.get(current.id);
  if (!file) throw new Fault("The image was lost when the page was reloaded: drop it again");
  const form = new FormData();
  for (const [name, value] of Object.entries(options())) form.set(name, value);
  form.set("image", file);
  return { item: null, answer: await ask("/api/search", { method: "POST", body: form, signal }) };
};

const render = async () => {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const before = current;
  current = read();
  fill(current);
  const same = before.kind === current.kind && before.id === current.id;
  if (!same) window.scrollTo({ top: 0 });
  $("alarm").hidden = true;
  complain("");
  offerMore(null);
  $("found").setAttribute("aria-busy", "true");
  $("groups").setAttribute("aria-busy", "true");
  try {
    about ??= await begin();
    if (current.kind === "home") await renderHome(signal);
    else if (SORTED.includes(current.kind)) await renderSorted(signal);
    else await renderFound(signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    failed(error);
  }
  if (signal.aborted) return;
  $("found").setAttribute("aria-busy", "false");
  $("groups").setAttribute("aria-busy", "false");
  $("found").dataset.at = location.hash; // the address of the shown results
};

const HEADLINES = { home: "The collection", duplicates: "Near-duplicates", clusters: "Clusters" };

const failed = (error) => {
  console.debug(error);
  const known = error instanceof Fault ? error.message : "Something went wrong on this page.";
  offerMore(null);
  if (error.status === 422 && current.where && /\bwhere\b/i.test(error.message)) {
    complain(error.message.replace(/^Where must/, "The filter must"));
    if ($("found").querySelector(".blank")) grid.fill([], uses());
    return;
  }
  $("alarm").hidden = false;
  $("alarm").firstElementChild.textContent = known;
  $("again").hidden = [413, 415, 422].includes(error.status);
  $("headline").textContent = error.status === 0 ? "No answer" : HEADLINES[current.kind] ?? "No look-alikes";
  $("timing").textContent = "";
  if (current.kind === "upload") showQuery(null);
  grid.fill([], about ? uses() : null);
  $("groups").replaceChildren();
};

const complain = (text) => {
  $("where-fault").hidden = !text;
  $("where-fault").textContent = text;
  $("where").setAttribute("aria-invalid", String(Boolean(text)));
};

const fill = (to) => {
  filter.show(to.where);
  $("k").value = to.k;
  $("rerank").value = to.rerank;
  $("exact").checked = to.exact;
  $("threshold").value = to.threshold;
  $("count").value = to.n;
  sayThreshold();
  const sorted = SORTED.includes(to.kind);
  $("search-options").hidden = to.kind === "home" || sorted;
  $("exact-label").hidden = !about?.near;
  $("knob").hidden = !sorted;
  $("threshold-label").hidden = to.kind !== "duplicates";
  $("count-label").hidden = to.kind !== "clusters";
  $("found").hidden = sorted;
  $("groups").hidden = !sorted;
  $("filter-open").hidden = $("chips").hidden = to.kind === "clusters"; // clusters are those of the whole collection
  if (to.kind === "clusters") filter.open(false);
  for (const link of $("views").children) {
    const here = link.dataset.view === to.kind;
    link.toggleAttribute("aria-current", here);
    if (here) link.setAttribute("aria-current", "page");
  }
};

const sayThreshold = () => ($("threshold-value").textContent = Number($("threshold").value).toFixed(3).replace(/0$/, ""));

const offerMore = (load, text = "") => {
  loadMore = load;
  $("more").hidden = load === null;
  $("more").textContent = text;
};

const showCollection = () => {
  queryItem = null;
  $("query").hidden = true;
  $("drop").hidden = false;
  document.title = `${about.name} · likewise`;
};

const renderHome = async (signal) => {
  const page = await listing(0, signal);
  showCollection();
  $("headline").textContent = current.where
    ? `${number(page.total)} of ${number(about.items)} match the filter`
    : about.items ? "Pick a picture, or drop your own" : "The collection is empty";
  $("timing").textContent = "";
  grid.fill(page.items, uses());
  after(page);
  drawMap(null, current.where ? page.items.map((each) => each.id) : []);
};

const listing = (offset, signal) => {
  const parameters = new URLSearchParams({ offset, limit: Math.min(48, about.limits.page), spread: !current.where });
  if (current.where) parameters.set("where", current.where);
  return ask(`/api/items?${parameters}`, { signal });
};

const after = (page) => {
  const listed = page.offset + page.items.length;
  if (listed >= page.total) return offerMore(null);
  offerMore(async (signal) => {
    const next = await listing(listed, signal);
    grid.append(next.items);
    after(next);
  }, `Show more of ${number(page.total)}`);
};

const renderSorted = async (signal, offset = 0) => {
  if (!offset) $("headline").textContent = current.kind === "clusters" ? "Clustering the collection …" : "Comparing all pictures …";
  $("timing").textContent = "";
  showCollection();
  const { total, shown } = await renderGroups(current, about, uses(), offset, signal);
  if (shown < total) offerMore((next) => renderSorted(next, shown), `Show more of ${number(total)} groups`);
  else offerMore(null);
  drawMap(null, []);
};

const renderFound = async (signal) => {
  if (current.kind === "upload") showQuery(null);
  const { item, answer } = await search(signal);
  const [{ found, place }] = answer.answers;
  const name = item ? titleOf(item) : uploads.get(current.id).name;
  const headline = $("headline");
  headline.textContent = found.length ? `${number(found.length)} look-alikes of ` : current.where ? "No picture matches the filter for " : "Nothing to compare with ";
  const em = document.createElement("em");
  em.textContent = name;
  headline.append(em);
  $("timing").textContent = `found in ${answer.milliseconds < 10 ? answer.milliseconds.toFixed(1) : Math.round(answer.milliseconds)} ms`;
  document.title = `${name} · ${about.name} · likewise`;
  grid.fill(found, uses(), item?.label);
  drawMap(place, found.map((each) => each.id));
};

const showQuery = (item) => {
  const image = $("query-image");
  const frame = image.parentElement;
  const file = uploads.get(current.id);
  queryItem = item;
  $("drop").hidden = true;
  $("query").hidden = false;
  $("back").disabled = history.length < 2;
  $("query-facts").replaceChildren();
  image.onload = () => image.classList.toggle("small", image.naturalWidth < 100 && image.naturalHeight < 100);
  if (current.kind === "upload") {
    $("query-title").textContent = file ? file.name : "An image";
    $("query-path").textContent = file ? `${size(file)}, not stored` : "";
    if (image.dataset.upload === String(current.id)) return;
    image.dataset.upload = String(current.id);
    frame.classList.toggle("none", !file);
    if (!file) return;
    image.onerror = () => frame.classList.add("none");
    image.src = URL.createObjectURL(file);
    image.alt = `The query: ${file.name}`;
    return;
  }
  if (!item) return;
  delete image.dataset.upload;
  $("query-title").textContent = titleOf(item);
  $("query-path").replaceChildren();
  breakable($("query-path"), item.path);
  for (const [name, value] of Object.entries(item.metadata)) {
    if (value === null) continue;
    const [term, fact] = [document.createElement("dt"), document.createElement("dd")];
    term.textContent = name;
    fact.textContent = String(value);
    $("query-facts").append(term, fact);
  }
  image.alt = `The query: ${titleOf(item)}`;
  showFirst(image, frame, [picture(item.id), thumbnail(item.id)]);
};

$("more").addEventListener("click", async () => {
  try {
    await loadMore?.(running.signal);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
});

const openOriginal = () => {
  const source = current.kind === "upload" ? uploads.get(current.id) : queryItem;
  if (source) showOriginal(source, current.kind === "upload" ? source.name : titleOf(source));
};
$("open-original").addEventListener("click", openOriginal);
$("query-image").addEventListener("click", openOriginal);

// ---------------------------------------------------------------------------------------------- the map

const drawMap = async (place, found) => {
  const { signal } = running;
  try {
    if (mapData?.version !== about.version) mapData = { version: about.version, ...(await ask("/api/map")) };
  } catch {
    return; // the page works without the map
  }
  if (signal.aborted || !mapData.ids.length) return;
  $("map-card").hidden = false;
  map ??= new CollectionMap($("map"), {
    over: (index, x, y) => tip(index, x, y),
    out: () => ($("tip").hidden = true),
    click: (index) => go({ kind: "item", id: mapData.ids[index] }),
  });
  map.show(mapData, place, found);
  const some = mapData.ids.length < mapData.total ? `${number(mapData.ids.length)} of ${number(mapData.total)} images` : `all ${number(mapData.total)} images`;
  const layout = { pca: "principal components", tsne: "t-SNE" }[mapData.layout];
  $("map-hint").textContent = place ? `The ring is the query, dots with an edge are its look-alikes, among ${some} (${layout}).` : `${sentence(some).slice(0, -1)}, similar ones near each other (${layout}).`;
  $("map").setAttribute("aria-label", place ? `The map of the collection: the query lies ${sayPlace(place)}` : "The map of the collection");
};

const sayPlace = ([x, y]) => {
  const across = x < 1 / 3 ? "left" : x > 2 / 3 ? "right" : "";
  const up = y > 2 / 3 ? "top" : y < 1 / 3 ? "bottom" : "";
  return across || up ? `at the ${[up, across].filter(Boolean).join(" ")}` : "in the middle";
};

// The file name of an item without a label; requested once, when the pointer is on it.
const files = new Map();
const nameOf = (id) => {
  if (!files.has(id)) files.set(id, ask(`/api/items/${id}`).then((item) => filename(item.path), () => ""));
  return files.get(id);
};

const tip = (index, x, y) => {
  const box = $("tip");
  const [image, name] = [box.querySelector("img"), box.querySelector("span")];
  const id = mapData.ids[index];
  if (box.dataset.id !== String(id)) {
    box.dataset.id = id;
    image.removeAttribute("src");
    image.onerror = () => image.removeAttribute("src");
    show(image, thumbnail(id));
    const code = mapData.labels[index];
    name.textContent = code === null ? "" : mapData.names[code];
    if (code === null) nameOf(id).then((file) => box.dataset.id === String(id) && (name.textContent = file));
  }
  box.hidden = false;
  const field = $("map").getBoundingClientRect();
  box.style.left = `${Math.max(2, Math.min(field.width - box.offsetWidth - 2, x - box.offsetWidth / 2))}px`;
  box.style.top = `${y > field.height / 2 ? y - box.offsetHeight - 12 : y + 12}px`;
};

// ---------------------------------------------------------------------------------------------- uploaded images

const take = (file) => {
  if (!file) return;
  if (about && !about.model) return alarm("This collection has no model for new images: search with one of its pictures.");
  if (about && file.size > about.limits.upload) {
    return alarm(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB, but the limit is ${about.limits.upload / 1e6} MB: make it smaller.`);
  }
  const id = uploads.size + 1;
  uploads.set(id, file);
  go({ kind: "upload", id });
};

const alarm = (text) => {
  $("alarm").hidden = false;
  $("alarm").firstElementChild.textContent = text;
  $("again").hidden = true;
  window.scrollTo({ top: 0 });
};

$("file").addEventListener("change", () => {
  take($("file").files[0]);
  $("file").value = "";
});
$("another").addEventListener("click", () => $("file").click());
$("back").addEventListener("click", () => history.back());
$("again").addEventListener("click", () => render());

let inside = 0;
const carries = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
addEventListener("dragenter", (event) => {
  if (!carries(event)) return;
  inside++;
  $("veil").hidden = false;
});
addEventListener("dragleave", (event) => {
  if (carries(event) && --inside <= 0) $("veil").hidden = true;
});
addEventListener("dragover", (event) => carries(event) && event.preventDefault());
addEventListener("drop", (event) => {
  inside = 0;
  $("veil").hidden = true;
  if (!carries(event)) return;
  event.preventDefault();
  take(event.dataTransfer.files[0]);
});
addEventListener("paste", (event) => {
  const [file] = event.clipboardData?.files ?? [];
  if (file) {
    event.preventDefault();
    take(file);
  } else if (!event.target.closest?.("input")) {
    alarm("The clipboard contains no image.");
  }
});

// ---------------------------------------------------------------------------------------------- filter and keys

$("k").addEventListener("change", () => go({ k: $("k").value }));
$("rerank").addEventListener("change", () => go({ rerank: $("rerank").value }));
$("exact").addEventListener("change", () => go({ exact: $("exact").checked }));
$("count").addEventListener("change", () => go({ n: $("count").value }));
$("threshold").addEventListener("input", sayThreshold);
$("threshold").addEventListener("change", () => go({ threshold: $("threshold").value }));

$("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment is the address
  $("found").focus();
});

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (document.querySelector("dialog[open]") || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "/" && !typing && !$("filter-open").hidden) {
    event.preventDefault();
    filter.open(true, true);
  } else if (event.key.toLowerCase() === "o" && !typing && ["item", "upload"].includes(current.kind)) {
    openOriginal();
  } else if (event.key === "Escape" && typing) {
    event.target.blur();
  } else if (event.key === "Escape" && current.kind !== "home") {
    go({ kind: "home" });
  }
});

const begin = async () => {
  const facts = await ask("/api/about");
  $("name").textContent = facts.name;
  const share = facts.near?.recall == null ? "" : ` (${(100 * facts.near.recall).toFixed(1)}% of the nearest)`;
  const near = facts.near ? `approximate search${share}` : "exact search";
  $("facts").textContent = [`${number(facts.items)} images`, facts.model?.name, near].filter(Boolean).join(" · ");
  $("exact-label").hidden = !facts.near;
  setVersion(facts.version);
  if (!facts.model) {
    $("drop").classList.add("off");
    $("file").disabled = true;
    $("drop").querySelector("strong").textContent = "No images can be dropped here";
    $("drop-hint").textContent = "this collection has vectors but no model: search with one of its pictures";
  }
  return facts;
};

// Gray placeholders until the pictures are loaded.
$("found").replaceChildren(
  ...Array.from({ length: 18 }, () => {
    const blank = make("li", "blank");
    blank.append(make("div", "picture"), make("div", "named"));
    return blank;
  }),
);
if (matchMedia("(max-width: 900px)").matches) $("map-card").open = false;
if (matchMedia("(hover: none)").matches) {
  $("drop").querySelector("strong").textContent = "Choose an image"; // touch screens cannot drop files
  $("drop-hint").textContent = "to find its look-alikes";
}
const filter = new FilterForm((where) => go({ where }));
addEventListener("hashchange", render);
render();
