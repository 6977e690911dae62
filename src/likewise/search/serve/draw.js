// Drawing: the map of the collection, and heat maps over two images.

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Few names divide the circle of hues evenly; many use multiples of the golden angle, so that consecutive ones differ.
export const hue = (code, names) => (names <= 12 ? (360 * code) / names : 137.50776 * code) % 360;

// A canvas at the resolution of the screen; drawing uses CSS pixels.
const fitted = (canvas, height) => {
  const width = canvas.clientWidth;
  const scale = Math.min(3, devicePixelRatio || 1);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return [pen, width, height];
};

const EDGE = 14;

export class CollectionMap {
  constructor(canvas, handlers) {
    this.canvas = canvas;
    this.handlers = handlers; // { over(index, x, y), out(), click(index) }
    this.data = null;
    this.found = new Set();
    this.query = null;
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => handlers.out());
    canvas.addEventListener("click", (event) => {
      const near = this.nearest(event);
      if (near >= 0) handlers.click(near);
    });
  }

  show(data, query, found) {
    this.data = data ?? this.data;
    this.query = query;
    this.found = new Set(found);
    this.draw();
  }

  place(x, y) {
    const wide = this.canvas.clientWidth - 2 * EDGE;
    const high = this.canvas.clientHeight - 2 * EDGE;
    return [EDGE + wide * x, EDGE + high * (1 - y)];
  }

  nearest(event) {
    if (!this.data) return -1;
    const box = this.canvas.getBoundingClientRect();
    let best = -1;
    let least = 14 ** 2;
    this.data.ids.forEach((_, index) => {
      const [x, y] = this.place(this.data.x[index], this.data.y[index]);
      const far = (x - event.clientX + box.left) ** 2 + (y - event.clientY + box.top) ** 2;
      if (far < least) [best, least] = [index, far];
    });
    return best;
  }

  point(event) {
    const near = this.nearest(event);
    this.canvas.style.cursor = near < 0 ? "default" : "pointer";
    if (near < 0) this.handlers.out();
    else this.handlers.over(near, ...this.place(this.data.x[near], this.data.y[near]));
  }

  draw() {
    if (!this.data || !this.canvas.clientWidth) return;
    const [pen, width, height] = fitted(this.canvas, this.canvas.clientHeight);
    const { ids, x, y, labels, names } = this.data;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const hasQuery = this.query !== null;
    const size = ids.length > 1500 ? 1.7 : ids.length > 300 ? 2.3 : 3.4;
    pen.clearRect(0, 0, width, height);
    const dot = (index, radius) => {
      const [px, py] = this.place(x[index], y[index]);
      pen.beginPath();
      pen.arc(px, py, radius, 0, 7);
    };
    const color = (index, alpha) =>
      labels[index] === null || names.length < 2
        ? `${dark ? "rgb(170 178 190" : "rgb(90 98 112"} / ${alpha})`
        : `hsl(${hue(labels[index], names.length)} ${dark ? 60 : 55}% ${dark ? 66 : 48}% / ${alpha})`;
    ids.forEach((id, index) => {
      if (hasQuery && this.found.has(id)) return;
      pen.fillStyle = color(index, hasQuery ? 0.28 : 0.75);
      dot(index, size);
      pen.fill();
    });
    ids.forEach((id, index) => {
      if (!hasQuery || !this.found.has(id)) return;
      pen.fillStyle = color(index, 1);
      pen.strokeStyle = css("--ink");
      pen.lineWidth = 1.3;
      dot(index, size + 1.6);
      pen.fill();
      pen.stroke();
    });
    if (hasQuery) {
      const [px, py] = this.place(...this.query);
      for (const [line, thick] of [[css("--card"), 5], [css("--accent"), 2.4]]) {
        pen.strokeStyle = line;
        pen.lineWidth = thick;
        pen.beginPath();
        pen.arc(px, py, 8, 0, 7);
        for (const [dx, dy] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
          pen.moveTo(px + 8 * dx, py + 8 * dy);
          pen.lineTo(px + 14 * dx, py + 14 * dy);
        }
        pen.stroke();
      }
    }
  }
}

// Interpolation of a grid: Catmull-Rom cubic, first along rows, then along columns.
const cubic = (a, b, c, d, t) => b + 0.5 * t * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)));
const at = (values, place) => values[Math.min(values.length - 1, Math.max(0, place))];
const between = (values, place) => {
  const low = Math.floor(place);
  return cubic(at(values, low - 1), at(values, low), at(values, low + 1), at(values, low + 2), place - low);
};

const smooth = (grid, side) => {
  const rows = grid.map((row) => Float64Array.from({ length: side }, (_, x) => between(row, ((x + 0.5) / side) * row.length - 0.5)));
  const found = new Float64Array(side * side);
  for (let x = 0; x < side; x++) {
    const column = rows.map((row) => row[x]);
    for (let y = 0; y < side; y++) found[y * side + x] = between(column, ((y + 0.5) / side) * column.length - 0.5);
  }
  return found;
};

// Warm where a region raises the similarity, cold where it lowers it, transparent where it does neither.
const heated = (grid, most, strength) => {
  const side = 128;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = side;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(side, side);
  smooth(grid, side).forEach((value, index) => {
    const t = Math.min(1, Math.abs(value) / most);
    const warm = [255 - 23 * t, 190 - 152 * t, 46 + 28 * t];
    const color = value > 0 ? warm : [47, 107, 255];
    image.data.set([...color, 255 * strength * t ** 0.85], 4 * index);
  });
  pen.putImageData(image, 0, 0);
  return canvas;
};

export const largest = (...grids) => Math.max(1e-9, ...grids.flat(2).map(Math.abs));

// A common height of two images, as a fraction of the width, at which neither is too small.
export const common = (images) =>
  Math.min(1.05, Math.max(0.6, ...images.map((image) => image.naturalHeight / image.naturalWidth || 1)));

// An image with its heat map; regions outside the crop of the model are darker.
export const overlay = (canvas, image, ratio, heat, most, strength) => {
  const [pen, width, height] = fitted(canvas, canvas.clientWidth * ratio);
  canvas.style.height = `${height}px`;
  const scale = Math.min(width / image.naturalWidth, height / image.naturalHeight);
  const [w, h] = [image.naturalWidth * scale, image.naturalHeight * scale];
  const [left, top] = [(width - w) / 2, (height - h) / 2];
  pen.imageSmoothingEnabled = scale < 6;
  pen.drawImage(image, left, top, w, h);
  if (!heat) return;
  const [x0, y0, x1, y1] = [left + heat.box[0] * w, top + heat.box[1] * h, left + heat.box[2] * w, top + heat.box[3] * h];
  pen.save();
  pen.fillStyle = `rgb(0 0 0 / ${0.55 * strength})`;
  pen.beginPath();
  pen.rect(left, top, w, h);
  pen.rect(x0, y0, x1 - x0, y1 - y0);
  pen.fill("evenodd");
  pen.fillStyle = `rgb(10 14 30 / ${0.34 * strength})`;
  pen.fillRect(x0, y0, x1 - x0, y1 - y0);
  pen.restore();
  pen.imageSmoothingEnabled = true;
  pen.imageSmoothingQuality = "high";
  pen.drawImage(heated(heat.places, most, strength), x0, y0, x1 - x0, y1 - y0);
};
