// Why two pictures are similar: their heat maps, in a dialog.
import { ask, Fault, show } from "./ask.js";
import { common, largest, overlay } from "./draw.js";
import { make, picture, titleOf } from "./grid.js";

const $ = (id) => document.getElementById(id);

let explained = null;

const loaded = (source) =>
  new Promise((done, fail) => {
    const image = new Image();
    image.onload = () => done(image);
    image.onerror = () => fail(new Fault("the image cannot be shown"));
    if (source instanceof Blob) image.src = URL.createObjectURL(source);
    else show(image, source);
  });

// The query is a file that was dropped on the page, or the id of an item.
export const explain = async (file, query, item) => {
  explained = null;
  $("why-lead").textContent = "Computing heat-maps …";
  $("why-legend").hidden = true;
  $("why-query-name").textContent = file ? file.name : $("query-title").textContent;
  $("why-item-name").textContent = titleOf(item);
  document.querySelector(".pair").hidden = false;
  document.querySelector(".pair").classList.add("busy");
  if (!$("why").open) $("why").showModal();
  try {
    const images = await Promise.all([loaded(file ?? picture(query)), loaded(picture(item.id))]);
    const shape = common(images);
    ["why-query", "why-item"].forEach((id, place) => overlay($(id), images[place], shape, null, 1, 1));
    let body = JSON.stringify({ query, item: item.id });
    if (file) {
      body = new FormData();
      body.set("image", file);
      body.set("item", item.id);
    }
    const headers = file ? {} : { "Content-Type": "application/json" };
    const result = await ask("/api/why", { method: "POST", body, headers });
    explained = { result, images };
    const lead = $("why-lead");
    lead.textContent = "Their similarity is ";
    lead.append(make("b", "", result.similarity.toFixed(3)), ". Each heat map splits that number over the regions of its image: warm regions raise the similarity, cold regions lower it, and together they sum to it exactly.");
    $("why-legend").hidden = false;
    drawWhy();
  } catch (error) {
    document.querySelector(".pair").hidden = !(error instanceof Fault) || error.status === 0;
    $("why-lead").textContent = error instanceof Fault ? error.message : "Something went wrong on this page.";
  }
  document.querySelector(".pair").classList.remove("busy");
};

const drawWhy = () => {
  if (!explained || !$("why").open) return;
  const { result, images } = explained;
  const most = largest(result.query.places, result.item.places);
  const strength = $("heat").value / 100;
  overlay($("why-query"), images[0], common(images), result.query, most, strength);
  overlay($("why-item"), images[1], common(images), result.item, most, strength);
};

$("heat").addEventListener("input", drawWhy);
addEventListener("resize", drawWhy);
$("why").addEventListener("click", (event) => event.target === $("why") && $("why").close());
