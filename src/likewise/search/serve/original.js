// A picture in full size, in a dialog.
import { show } from "./ask.js";
import { picture } from "./grid.js";

const $ = (id) => document.getElementById(id);
const image = $("original-image");

const zoom = (actual) => {
  $("original-sheet").classList.toggle("actual", actual);
  $("original-zoom").textContent = actual ? "Fit to the window" : "Actual pixels";
};

image.addEventListener("load", () => {
  $("original-size").textContent = `${image.naturalWidth.toLocaleString("en")} × ${image.naturalHeight.toLocaleString("en")} pixels`;
  $("original-link").href = image.src;
  $("original-zoom").hidden = image.naturalWidth <= image.clientWidth; // it is already shown at full resolution
});
image.addEventListener("error", () => ($("original-size").textContent = "The file is not in the index's image folder."));
$("original-zoom").addEventListener("click", () => zoom(!$("original-sheet").classList.contains("actual")));
image.addEventListener("click", () => $("original-zoom").click());
$("original").addEventListener("click", (event) => event.target === $("original") && $("original").close());

// A file that was dropped on the page, or an item of the collection.
export const showOriginal = (source, name) => {
  $("original-title").textContent = name;
  $("original-size").textContent = "…";
  image.alt = name;
  image.removeAttribute("src");
  zoom(false);
  if (source instanceof Blob) image.src = URL.createObjectURL(source);
  else show(image, picture(source.id), true);
  if (!$("original").open) $("original").showModal();
};
