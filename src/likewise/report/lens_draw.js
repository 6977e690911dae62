"use strict";
// What is drawn: the circle, weights against similarities, the matrix of weights, the loss over steps.
const Draw = (() => {
  const SHAPES = 7;
  const colors = {};

  // Colors are the style sheet's, so that they follow light and dark.
  const restyle = () => {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(`--${name}`).trim();
    for (const name of ["ink", "muted", "line", "card", "ground", "soft", "accent", "pull", "push"]) colors[name] = named(name);
    colors.classes = Array.from({ length: 8 }, (_, at) => named(`k${at}`));
    colors.bytes = Object.fromEntries(["pull", "push"].map((name) => [name, bytes(colors[name])]));
  };
  const bytes = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const colorOf = (own) => colors.classes[own % colors.classes.length];
  // eight colors and seven shapes: fifty-six classes look different, and two of one color differ in shape
  const shapeOf = (own) => (own + Math.floor(own / colors.classes.length)) % SHAPES;

  // A canvas has as many pixels as the screen shows; its size is watched, because asking for it takes time.
  const sizes = new WeakMap();
  const watch = (canvas, changed) => {
    const note = () => {
      const scale = Math.min(2, devicePixelRatio || 1);
      const [width, height] = [canvas.clientWidth, canvas.clientHeight];
      if (!width || !height) return;
      sizes.set(canvas, { width, height, scale });
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      changed();
    };
    new ResizeObserver(note).observe(canvas);
    note();
  };
  const begin = (canvas) => {
    const size = sizes.get(canvas);
    if (!size) return null;
    const pen = canvas.getContext("2d");
    pen.setTransform(size.scale, 0, 0, size.scale, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    return [pen, size.width, size.height, size.scale];
  };

  // ---- the circle

  const frame = (canvas) => {
    const { width, height } = sizes.get(canvas) || { width: 1, height: 1 };
    return { x: width / 2, y: height / 2, radius: 0.415 * Math.min(width, height) };
  };
  const spot = (at, angle, radius = at.radius) => [at.x + radius * Math.cos(angle), at.y - radius * Math.sin(angle)];

  const outline = (pen, shape, x, y, size) => {
    const corners = (count, first, reach) => {
      for (let k = 0; k < count; k++) {
        const angle = first + (k * 2 * Math.PI) / count;
        pen[k ? "lineTo" : "moveTo"](x + reach * size * Math.cos(angle), y - reach * size * Math.sin(angle));
      }
      pen.closePath();
    };
    const up = Math.PI / 2;
    if (shape === 0) {
      pen.moveTo(x + size, y);
      pen.arc(x, y, size, 0, 2 * Math.PI);
    } else if (shape === 1) corners(4, Math.PI / 4, 1.25);
    else if (shape === 2) corners(3, up, 1.4);
    else if (shape === 3) corners(3, -up, 1.4);
    else if (shape === 4 || shape === 5) {
      // a cross, upright or lying
      const turn = shape === 4 ? 0 : Math.PI / 4;
      for (let k = 0; k < 12; k++) {
        const [far, side] = [[1.3, 0.45], [1.3, -0.45], [0.45, -0.45]][k % 3];
        const angle = turn - (Math.floor(k / 3) * Math.PI) / 2;
        const [dx, dy] = [far * Math.cos(angle) - side * Math.sin(angle), far * Math.sin(angle) + side * Math.cos(angle)];
        pen[k ? "lineTo" : "moveTo"](x + size * dx, y - size * dy);
      }
      pen.closePath();
    } else if (shape === 6) {
      for (let k = 0; k < 10; k++) {
        const [angle, reach] = [up + (k * Math.PI) / 5, k % 2 ? 0.65 : 1.5];
        pen[k ? "lineTo" : "moveTo"](x + size * reach * Math.cos(angle), y - size * reach * Math.sin(angle));
      }
      pen.closePath();
    } else {
      // a proxy
      pen.moveTo(x, y - 1.7 * size);
      pen.lineTo(x + 1.25 * size, y);
      pen.lineTo(x, y + 1.7 * size);
      pen.lineTo(x - 1.25 * size, y);
      pen.closePath();
    }
  };

  const arrow = (pen, x, y, dx, dy, head) => {
    const long = Math.hypot(dx, dy);
    const [ux, uy] = [dx / long, dy / long];
    const tip = Math.min(head, long);
    pen.moveTo(x, y);
    pen.lineTo(x + dx, y + dy);
    pen.moveTo(x + dx - tip * (ux - 0.5 * uy), y + dy - tip * (uy + 0.5 * ux));
    pen.lineTo(x + dx, y + dy);
    pen.lineTo(x + dx - tip * (ux + 0.5 * uy), y + dy - tip * (uy - 0.5 * ux));
  };

  const circle = (canvas, lane, scene) => {
    const started = begin(canvas);
    if (!started) return;
    const [pen] = started;
    const at = frame(canvas);
    const n = lane.angles.length;
    const size = n <= 40 ? 6 : n <= 90 ? 4.8 : 3.6;
    pen.lineWidth = 1.5;
    pen.strokeStyle = colors.line;
    pen.beginPath();
    pen.arc(at.x, at.y, at.radius, 0, 2 * Math.PI);
    pen.stroke();
    pairLines(pen, at, lane, scene);
    forces(pen, at, lane, scene);
    points(pen, at, lane, size);
    marks(pen, at, lane, scene, size);
  };

  // From the selected point to all that it is compared with: as thick as the weight, blue together, red apart.
  const pairLines = (pen, at, lane, scene) => {
    const largest = scene.pulls.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
    if (!largest) return;
    const [x, y] = spot(at, lane.angle(scene.selected));
    pen.lineCap = "round";
    for (let item = 0; item < scene.pulls.length; item++) {
      const share = Math.abs(scene.pulls[item]) / largest;
      if (share < 0.004 || item === scene.selected) continue;
      const together = scene.pulls[item] > 0;
      const same = lane.classOf(item) === lane.classOf(scene.selected);
      pen.globalAlpha = 0.25 + 0.55 * share;
      pen.lineWidth = 0.6 + 6 * share;
      pen.strokeStyle = together ? colors.pull : colors.push;
      pen.setLineDash(together === same ? [] : [3, 7]); // the wrong way round
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(...spot(at, lane.angle(item)));
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  };

  const forces = (pen, at, lane, scene) => {
    const reach = (0.42 * at.radius * scene.arrows) / (scene.scale || 1);
    const longest = 0.24 * 2 * at.radius;
    pen.strokeStyle = colors.ink;
    pen.globalAlpha = 0.8;
    const many = lane.angles.length > 90;
    pen.lineWidth = many ? 1 : 1.5;
    pen.beginPath();
    const put = (angle, along, out) => {
      let [turning, away] = [-reach * along, scene.radial ? -reach * out : 0];
      const long = Math.hypot(turning, away);
      if (long < 1.5) return;
      if (long > longest) [turning, away] = [(turning * longest) / long, (away * longest) / long];
      const [x, y] = spot(at, angle);
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      arrow(pen, x, y, -s * turning + c * away, -(c * turning + s * away), many ? 4 : 6);
    };
    for (let i = 0; i < lane.angles.length; i++) put(lane.angles[i], lane.derivatives[i], lane.radial[i]);
    if (lane.proxyDerivatives) for (let i = 0; i < lane.proxies.length; i++) put(lane.proxies[i], lane.proxyDerivatives[i], lane.proxyRadial[i]);
    pen.stroke();
    pen.globalAlpha = 1;
    // of the selected point, what its own class and what the others do, beside the circle
    const own = (force, color, by) => {
      const turning = Math.max(-longest, Math.min(longest, reach * force));
      if (Math.abs(turning) < 1.5) return;
      const angle = lane.angle(scene.selected);
      const [x, y] = spot(at, angle, at.radius + by);
      pen.lineWidth = 3;
      pen.strokeStyle = color;
      pen.beginPath();
      arrow(pen, x, y, -Math.sin(angle) * turning, -Math.cos(angle) * turning, 9);
      pen.stroke();
    };
    if (scene.shares) {
      own(scene.shares.near, colors.pull, 15);
      own(scene.shares.far, colors.push, 23);
    }
  };

  const points = (pen, at, lane, size) => {
    const n = lane.angles.length;
    pen.lineWidth = 1.2;
    pen.lineJoin = "round";
    const draw = (from, to, owner, shape, large) => {
      let begun = -1;
      const finish = () => {
        if (begun < 0) return;
        pen.fillStyle = colorOf(begun);
        pen.strokeStyle = colors.card;
        pen.fill();
        pen.stroke();
      };
      for (let item = from; item < to; item++) {
        const own = owner(item);
        if (own !== begun) {
          finish();
          pen.beginPath();
          begun = own;
        }
        outline(pen, shape(own), ...spot(at, lane.angle(item)), large);
      }
      finish();
    };
    const owner = (item) => lane.classOf(item);
    draw(0, n, owner, shapeOf, size);
    draw(n, lane.count, owner, () => -1, size);
    // a line round every proxy
    pen.strokeStyle = colors.ink;
    pen.beginPath();
    for (let item = n; item < lane.count; item++) outline(pen, -1, ...spot(at, lane.angle(item)), size + 1);
    pen.stroke();
  };

  // Rings: the selected point, and the two whose weight is followed round the circle.
  const marks = (pen, at, lane, scene, size) => {
    const ring = (item, color, dash, reach) => {
      pen.strokeStyle = color;
      pen.lineWidth = 2;
      pen.setLineDash(dash);
      pen.beginPath();
      pen.arc(...spot(at, lane.angle(item)), reach, 0, 2 * Math.PI);
      pen.stroke();
      pen.setLineDash([]);
    };
    for (const [name, color] of [["near", colors.pull], ["far", colors.push]])
      if (scene.partners[name]) ring(scene.partners[name].other, color, [3, 3], size + 6);
    const picked = scene.selected;
    ring(picked, scene.focused ? colors.accent : colors.ink, [], size + 6);
    if (scene.focused) ring(picked, colors.accent, [], size + 9);
    pen.fillStyle = colors.ink;
    pen.font = "600 13px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const named = (item, text) => {
      const place = spot(at, lane.angle(item), at.radius - size - 21);
      pen.strokeText(text, ...place);
      pen.fillText(text, ...place);
    };
    pen.strokeStyle = colors.ground; // a halo, over lines
    pen.lineWidth = 4;
    if (scene.hovered && scene.hovered[0] !== picked) named(...scene.hovered);
    named(picked, scene.label);
  };

  // ---- weight against similarity

  const nice = (value) => {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].find((each) => each * power >= value * 0.999) * power;
  };
  const short = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 0.001 && size < 10000) return String(+value.toPrecision(size >= 100 ? 4 : 3)).replace("-", "−");
    return value.toExponential(1).replace("e+", "e").replaceAll("-", "−");
  };

  const EDGE = { left: 54, right: 12, top: 10, bottom: 34 };
  const RANGES = { cosine: [-1, 1], dot: [-1, 1], squared_euclidean: [-4, 0], euclidean: [-2, 0] };

  // How far the axes go; the upper end stays until it no longer fits, so that it does not tremble.
  const axes = (lane, group, curves, kept) => {
    let [low, high] = [0, 0];
    let [left, right] = RANGES[lane.loss.similarity] || [Infinity, -Infinity];
    const free = left > right;
    for (let at = 0; at < group.kinds.length; at++) {
      if (!group.kinds[at]) continue;
      const weight = group.kinds[at] > 0 ? -group.derivatives[at] : group.derivatives[at];
      if (weight > high) high = weight;
      if (weight < low) low = weight;
      if (free || group.columns !== "samples") [left, right] = [Math.min(left, group.s[at]), Math.max(right, group.s[at])];
    }
    for (const curve of curves)
      for (const point of curve)
        if (point) {
          high = Math.max(high, point[1]);
          low = Math.min(low, point[1]);
        }
    if (!(left < right)) [left, right] = [left - 1, left + 1];
    const keep = (value, old) => (old && value <= old * 1.001 && value > old / 5 ? old : nice(value));
    // what is a hundred thousandth of the rest is nothing
    const found = { left, right, high: high > -1e-5 * low ? keep(high, kept && kept.high) : 0, low: 0 };
    if (-low > 1e-5 * high && low < 0) found.low = -keep(-low, kept && -kept.low);
    if (!found.high && !found.low) found.high = 1;
    return found;
  };

  let spare = null; // an image that dots are written into
  const dots = (pen, group, x, y, width, height, scale) => {
    const [wide, tall] = [Math.round(width * scale), Math.round(height * scale)];
    if (!spare || spare.canvas.width !== wide || spare.canvas.height !== tall) {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [wide, tall];
      const context = canvas.getContext("2d");
      const image = context.createImageData(wide, tall);
      spare = { canvas, context, image, pixels: new Uint32Array(image.data.buffer) };
    }
    const { pixels } = spare;
    pixels.fill(0);
    const many = group.kinds.length;
    const radius = Math.max(1, Math.round(scale * (many > 20000 ? 0.7 : many > 3000 ? 1.2 : 2)));
    const stamp = [];
    for (let dy = -radius; dy <= radius; dy++)
      for (let dx = -radius; dx <= radius; dx++) if (dx * dx + dy * dy <= radius * radius + 0.5) stamp.push(dy * wide + dx);
    const opaque = many > 20000 ? 150 : 190;
    const packed = (name) => {
      const [r, g, b] = colors.bytes[name];
      return ((opaque << 24) | (b << 16) | (g << 8) | r) >>> 0;
    };
    for (const [kind, color] of [[-1, packed("push")], [1, packed("pull")]])
      for (let at = 0; at < many; at++) {
        if (group.kinds[at] !== kind) continue;
        const px = Math.round(x(group.s[at]) * scale);
        const py = Math.round(y(-kind * group.derivatives[at]) * scale);
        if (px < radius || px >= wide - radius || py < radius || py >= tall - radius) continue;
        const place = py * wide + px;
        for (let k = 0; k < stamp.length; k++) pixels[place + stamp[k]] = color;
      }
    spare.context.putImageData(spare.image, 0, 0);
    pen.drawImage(spare.canvas, 0, 0, width, height);
  };

  const scatter = (canvas, lane, scene, kept) => {
    const started = begin(canvas);
    const group = lane.groups[lane.view];
    if (!started || !group) return kept;
    const [pen, width, height, scale] = started;
    const curves = Object.values(scene.curves);
    const range = axes(lane, group, curves, kept);
    const [wide, tall] = [width - EDGE.left - EDGE.right, height - EDGE.top - EDGE.bottom];
    const x = (s) => EDGE.left + ((s - range.left) / (range.right - range.left)) * wide;
    const y = (w) => EDGE.top + ((range.high - w) / (range.high - range.low)) * tall;
    grid(pen, range, x, y, width, height, scene.axis);
    dots(pen, group, x, y, width, height, scale);
    pen.save();
    pen.beginPath();
    pen.rect(EDGE.left, EDGE.top - 4, wide + 8, tall + 8);
    pen.clip();
    for (const [name, color] of [["far", colors.push], ["near", colors.pull]])
      if (scene.curves[name]) curve(pen, scene.curves[name], x, y, color, group, scene.partners[name]);
    pen.restore();
    return range;
  };

  const grid = (pen, range, x, y, width, height, axis) => {
    pen.strokeStyle = colors.line;
    pen.fillStyle = colors.muted;
    pen.lineWidth = 1;
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const lines = range.low < 0 && range.high > 0 ? [range.low, 0, range.high] : [range.low, (range.low + range.high) / 2, range.high];
    // labels that would touch each other give way to zero
    const shown = lines.filter((w) => w === 0 || Math.abs(y(w) - y(0)) > 14);
    for (const w of shown) {
      pen.beginPath();
      pen.moveTo(EDGE.left, y(w));
      pen.lineTo(width - EDGE.right, y(w));
      pen.stroke();
      pen.fillText(short(w), EDGE.left - 6, y(w));
    }
    pen.textBaseline = "alphabetic";
    for (let k = 0; k <= 4; k++) {
      const s = range.left + ((range.right - range.left) * k) / 4;
      pen.textAlign = k === 0 ? "left" : k === 4 ? "right" : "center";
      pen.fillText(short(+s.toFixed(3)), x(s), height - EDGE.bottom + 16);
    }
    pen.textAlign = "center";
    pen.fillText(axis, EDGE.left + (width - EDGE.left - EDGE.right) / 2, height - 4);
  };

  // The weight of one pair as its second point goes round, and where it stands now.
  const curve = (pen, list, x, y, color, group, pair) => {
    pen.lineJoin = "round";
    for (const [wide, paint] of [[5, colors.card], [2, color]]) {
      pen.strokeStyle = paint;
      pen.lineWidth = wide;
      pen.beginPath();
      const known = list.filter(Boolean);
      for (const [s, weight] of known) pen.lineTo(x(s), y(weight));
      pen.closePath();
      pen.stroke();
    }
    if (!pair) return;
    const at = pair.row * group.n + pair.column;
    pen.fillStyle = colors.card;
    pen.beginPath();
    pen.arc(x(group.s[at]), y(-pair.kind * group.derivatives[at]), 5, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
  };

  // ---- the matrix of weights

  const images = new WeakMap();
  const heat = (canvas, lane, scene) => {
    const started = begin(canvas);
    const group = lane.groups[lane.view];
    if (!started || !group) return;
    const [pen, width, height] = started;
    let image = images.get(canvas);
    if (!image || image.width !== group.n || image.height !== group.m) {
      const held = document.createElement("canvas");
      [held.width, held.height] = [group.n, group.m];
      const context = held.getContext("2d");
      const data = context.createImageData(group.n, group.m);
      image = { held, context, data, pixels: new Uint32Array(data.data.buffer), width: group.n, height: group.m };
      images.set(canvas, image);
    }
    let largest = 0;
    for (let at = 0; at < group.kinds.length; at++) if (group.kinds[at]) largest = Math.max(largest, Math.abs(group.derivatives[at]));
    const [pull, push] = ["pull", "push"].map((name) => {
      const [r, g, b] = colors.bytes[name];
      return (b << 16) | (g << 8) | r;
    });
    for (let at = 0; at < group.kinds.length; at++) {
      const derivative = group.kinds[at] && largest ? group.derivatives[at] / largest : 0;
      const alpha = Math.round(255 * Math.sqrt(Math.abs(derivative))); // the root, so that light weights are seen
      image.pixels[at] = ((alpha << 24) | (derivative < 0 ? pull : push)) >>> 0;
    }
    image.context.putImageData(image.data, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(image.held, 0, 0, width, height);
    borders(pen, lane, group, width, height);
    const row = group.rows === "samples" ? scene.selected : scene.selected - lane.angles.length;
    if (row >= 0 && row < group.m) {
      pen.strokeStyle = colors.ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(0.75, (row / group.m) * height, width - 1.5, Math.max(2, height / group.m));
    }
  };

  const borders = (pen, lane, group, width, height) => {
    pen.strokeStyle = colors.line;
    pen.lineWidth = 1;
    pen.beginPath();
    for (let i = 1; i < group.m; i++)
      if (lane.ownerOf(group.rows, i) !== lane.ownerOf(group.rows, i - 1)) {
        pen.moveTo(0, (i / group.m) * height);
        pen.lineTo(width, (i / group.m) * height);
      }
    for (let j = 1; j < group.n; j++)
      if (lane.ownerOf(group.columns, j) !== lane.ownerOf(group.columns, j - 1)) {
        pen.moveTo((j / group.n) * width, 0);
        pen.lineTo((j / group.n) * width, height);
      }
    pen.stroke();
  };

  // ---- the loss over steps

  const trace = (canvas, values) => {
    const started = begin(canvas);
    if (!started) return;
    const [pen, width, height] = started;
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const x = (at) => 4 + (at / Math.max(1, values.length - 1)) * (width - 8);
    const y = (value) => height - 6 - ((value - low) / (high - low || 1)) * (height - 12);
    pen.strokeStyle = colors.accent;
    pen.lineWidth = 1.8;
    pen.lineJoin = "round";
    pen.beginPath();
    const stride = Math.max(1, Math.floor(values.length / width));
    for (let at = 0; at < values.length; at += stride) pen[at ? "lineTo" : "moveTo"](x(at), y(values[at]));
    pen.stroke();
    const last = values.length - 1;
    pen.fillStyle = colors.accent;
    pen.beginPath();
    pen.arc(values.length > 1 ? x(last) : 4, y(values[last]), 3, 0, 2 * Math.PI);
    pen.fill();
  };

  return { circle, colorOf, frame, heat, restyle, scatter, shapeOf, short, spot, trace, watch };
})();
