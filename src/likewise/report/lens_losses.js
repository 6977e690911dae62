// Printed from the declarations of the losses by likewise.analysis.write_scripts; do not edit.
// run(x, labels, n, d, proxies, classes, parameters) gives the loss, its matrices and its gradients.
const LENS = (() => {
"use strict";
// What printed losses share: similarities, relations, and the backward pass from matrices to points.

const square = (x) => x * x;
const softplus = (x) => (x > 50 ? x : Math.log1p(Math.exp(x)));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// ---- reverse mode: each operation adds its backward step to a tape, which is run in reverse

class Tape {
  constructor() {
    this.steps = [];
  }
  add(backward) {
    this.steps.push(backward);
  }
  run() {
    while (this.steps.length) this.steps.pop()();
  }
}

// a matrix and the derivative of the loss by its entries, which begins at zero
const matrixOf = (rows, columns, data = new Float64Array(rows * columns)) => ({
  rows, columns, data, grad: new Float64Array(rows * columns),
});

// rows scaled to length one; a row of zeros stays zero and gets no gradient
const unit = (tape, X) => {
  const { rows, columns } = X;
  const U = matrixOf(rows, columns);
  const largest = new Float64Array(rows).fill(Infinity), norms = new Float64Array(rows);
  for (let i = 0; i < rows; i++) {
    let most = 0, sum = 0;
    for (let k = i * columns; k < (i + 1) * columns; k++) most = Math.max(most, Math.abs(X.data[k]));
    if (most >= 2.2250738585072014e-308) largest[i] = most;
    for (let k = i * columns; k < (i + 1) * columns; k++) sum += square(X.data[k] / largest[i]);
    norms[i] = Math.max(Math.sqrt(sum), 1);
    for (let k = i * columns; k < (i + 1) * columns; k++) U.data[k] = X.data[k] / largest[i] / norms[i];
  }
  tape.add(() => {
    for (let i = 0; i < rows; i++) {
      let along = 0;
      for (let k = i * columns; k < (i + 1) * columns; k++) along += U.data[k] * U.grad[k];
      for (let k = i * columns; k < (i + 1) * columns; k++) X.grad[k] += (U.grad[k] - U.data[k] * along) / norms[i] / largest[i];
    }
  });
  return U;
};

// rows without the mean of their entries; a row of equal entries, but for rounding, is zero
const centered = (tape, X) => {
  const { rows, columns } = X;
  const C = matrixOf(rows, columns), silent = new Uint8Array(rows);
  for (let i = 0; i < rows; i++) {
    let mean = 0, before = 0, after = 0;
    for (let k = i * columns; k < (i + 1) * columns; k++) mean += X.data[k] / columns;
    for (let k = i * columns; k < (i + 1) * columns; k++) {
      C.data[k] = X.data[k] - mean;
      before += square(X.data[k]);
      after += square(C.data[k]);
    }
    silent[i] = after <= Number.EPSILON * before;
    if (silent[i]) C.data.fill(0, i * columns, (i + 1) * columns);
  }
  tape.add(() => {
    for (let i = 0; i < rows; i++) {
      if (silent[i]) continue;
      let mean = 0;
      for (let k = i * columns; k < (i + 1) * columns; k++) mean += C.grad[k] / columns;
      for (let k = i * columns; k < (i + 1) * columns; k++) X.grad[k] += C.grad[k] - mean;
    }
  });
  return C;
};

// rows less a constant row
const shifted = (tape, X, shift) => {
  const moved = matrixOf(X.rows, X.columns, X.data.map((value, k) => value - shift[k % X.columns]));
  tape.add(() => moved.grad.forEach((derivative, k) => (X.grad[k] += derivative)));
  return moved;
};

// ---- similarities: functions of an inner product p and the squared norms a and b

// each writes s and its derivatives by p, a and b; norms of unit vectors are constants
const LINKS = {
  cosine: (p, a, b, into) => ((into[0] = p), (into[1] = 1), (into[2] = into[3] = 0)),
  dot: (p, a, b, into) => ((into[0] = p), (into[1] = 1), (into[2] = into[3] = 0)),
  squared_euclidean: (p, a, b, into, normalize) => ((into[0] = 2 * p - a - b), (into[1] = 2), (into[2] = into[3] = normalize ? 0 : -1)),
  euclidean: (p, a, b, into) => {
    let squared = a + b - 2 * p;
    if (squared <= 4 * Number.EPSILON * (a + b)) squared = 0; // what is below rounding is no distance
    const distance = Math.sqrt(squared);
    into[0] = -distance;
    into[1] = distance > 0 ? 1 / distance : 0;
    into[2] = into[3] = -into[1] / 2;
  },
  snr: (p, a, b, into) => {
    if (a === 0) return into.fill(0); // without a signal there is no ratio
    into[0] = (2 * p - a - b) / a;
    into[1] = 2 / a;
    into[2] = -(1 + into[0]) / a;
    into[3] = -1 / a;
  },
};

const squares = (X) => {
  const found = new Float64Array(X.rows);
  X.data.forEach((value, k) => (found[Math.floor(k / X.columns)] += value * value));
  return found;
};

const prepared = (tape, { kind, normalize }, A, B) => {
  const one = (X) => {
    const scaled = normalize ? unit(tape, X) : X;
    return kind === "snr" ? centered(tape, scaled) : scaled;
  };
  let left = one(A), right = A === B ? left : one(B);
  if (kind === "euclidean") {
    // a common shift changes no distance, and small ones are rounded less without it
    const mean = new Float64Array(right.columns);
    right.data.forEach((value, k) => (mean[k % right.columns] += value / right.rows));
    const same = left === right;
    left = shifted(tape, left, mean);
    right = same ? left : shifted(tape, right, mean);
  }
  return [left, right];
};

const similarities = (tape, similarity, A, B) => {
  const [left, right] = prepared(tape, similarity, A, B);
  const [m, n, d] = [left.rows, right.rows, left.columns];
  const link = LINKS[similarity.kind], into = new Float64Array(4);
  const ofLeft = squares(left), ofRight = left === right ? ofLeft : squares(right);
  const S = matrixOf(m, n), products = new Float64Array(m * n);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      let product = 0;
      for (let k = 0; k < d; k++) product += left.data[i * d + k] * right.data[j * d + k];
      products[i * n + j] = product;
      link(product, ofLeft[i], ofRight[j], into, similarity.normalize);
      S.data[i * n + j] = into[0];
    }
  tape.add(() => {
    const byLeft = new Float64Array(m), byRight = new Float64Array(n);
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        const derivative = S.grad[i * n + j];
        if (derivative === 0) continue;
        link(products[i * n + j], ofLeft[i], ofRight[j], into, similarity.normalize);
        byLeft[i] += derivative * into[2];
        byRight[j] += derivative * into[3];
        for (let k = 0; k < d; k++) {
          left.grad[i * d + k] += derivative * into[1] * right.data[j * d + k];
          right.grad[j * d + k] += derivative * into[1] * left.data[i * d + k];
        }
      }
    for (let k = 0; k < m * d; k++) left.grad[k] += 2 * byLeft[Math.floor(k / d)] * left.data[k];
    for (let k = 0; k < n * d; k++) right.grad[k] += 2 * byRight[Math.floor(k / d)] * right.data[k];
  });
  return S;
};

// ---- relations

// Kinds are 1 for a positive pair, 2 for a negative one and 0 for neither; each side has the places of its entries in the
// matrix, those of anchor i from first[i] on.
const relationOf = (kinds, m, n) => {
  const side = (belongs) => {
    const first = new Int32Array(m + 1), entries = new Int32Array(m * n);
    let count = 0;
    for (let i = 0, ij = 0; i < m; i++) {
      for (let j = 0; j < n; j++, ij++) if (belongs(kinds[ij])) entries[count++] = ij;
      first[i + 1] = count;
    }
    return { first, entries };
  };
  return { kinds, positives: side((kind) => kind === 1), negatives: side((kind) => kind === 2), both: side((kind) => kind > 0) };
};

// The relation of labels; a set has nothing to do with itself on the diagonal.
const relate = (anchors, references, oneSet) => {
  const kinds = new Uint8Array(anchors.length * references.length);
  for (let i = 0, ij = 0; i < anchors.length; i++)
    for (let j = 0; j < references.length; j++, ij++) kinds[ij] = oneSet && i === j ? 0 : anchors[i] === references[j] ? 1 : 2;
  return relationOf(kinds, anchors.length, references.length);
};

// the similarity to a class is that to its most similar center; ties share a gradient
const nearest = (tape, S, centers) => {
  const pooled = matrixOf(S.rows, S.columns / centers);
  pooled.data.forEach((_, at) => {
    let best = -Infinity;
    for (let k = at * centers; k < (at + 1) * centers; k++) best = Math.max(best, S.data[k]);
    pooled.data[at] = best;
  });
  tape.add(() =>
    pooled.grad.forEach((derivative, at) => {
      let ties = 0;
      for (let k = at * centers; k < (at + 1) * centers; k++) ties += S.data[k] === pooled.data[at];
      for (let k = at * centers; k < (at + 1) * centers; k++) if (S.data[k] === pooled.data[at]) S.grad[k] += derivative / ties;
    }));
  return pooled;
};

// ---- a loss: what is computed on each matrix, and the gradients of the points

// Samples and proxies, what is compared with what, and the matrices that were made.
class Points {
  constructor(x, labels, n, d, proxies, classes) {
    this.tape = new Tape();
    this.samples = matrixOf(n, d, x);
    this.proxies = proxies ? matrixOf(proxies.length / d, d, proxies) : null;
    this.labels = labels.subarray(0, n);
    this.classes = classes;
    this.centers = proxies ? this.proxies.rows / classes : 0;
    this.owners = proxies ? Int32Array.from({ length: this.proxies.rows }, (_, k) => Math.floor(k / this.centers)) : null;
    this.matrices = [];
  }

  compare(between, similarity, A, B) {
    const S = similarities(this.tape, similarity, A, B);
    this.matrices.push({ between, rows: S.rows, columns: S.columns, s: S.data, derivatives: S.grad });
    return S;
  }

  // A matrix by name: its similarities, pooled or not, and its relation.
  matrix({ between, similarity, pool }, h) {
    const { samples, proxies, labels, owners } = this;
    if (between === "samples against samples") return [this.compare(between, similarity, samples, samples), relate(labels, labels, true)];
    if (between === "proxies against samples") return [this.compare(between, similarity, proxies, samples), relate(owners, labels)];
    if (between === "proxies against proxies") {
      const each = owners.map((_, k) => k); // every proxy is alone in its class
      return [this.compare(between, similarity, proxies, proxies), relate(each, each, true)];
    }
    const S = this.compare("samples against proxies", similarity, samples, proxies);
    if (!pool) return [S, relate(labels, owners)];
    const every = Int32Array.from({ length: this.classes }, (_, k) => k);
    return [pool(this.tape, S, this.centers, h), relate(labels, every)];
  }
}

// Each matrix has functions (S, pairs, h, inputs, points) that return a value and add its derivative to S.grad; `mine` says
// which pairs are left, `inputs` makes what belongs to anchors, references or pairs, and `alone` are functions of the points.
const lossOf = ({ names, alone, matrices }) => (x, labels, n, d, proxies, classes, values) => {
  const points = new Points(x, labels, n, d, proxies, classes);
  const h = Object.fromEntries(names.map((name, k) => [name, values[k]]));
  let value = 0;
  for (const each of matrices) {
    const [S, all] = points.matrix(each, h);
    const pairs = each.mine ? each.mine(S, all, h) : all;
    const inputs = each.inputs.map((make) => make(points, h));
    for (const compute of each.functions) value += compute(S, pairs, h, inputs, points);
  }
  for (const each of alone) value += each(points, h);
  points.tape.run();
  const proxyGradient = points.proxies ? points.proxies.grad : null;
  return { value, matrices: points.matrices, gradient: points.samples.grad, proxyGradient };
};

// A function that is written by hand gives a sum over units, their number, that of those that are not zero, and derivatives of
// the sum; this is their mean.
const averaged = (reduction, compute) => (S, pairs, h, inputs, points) => {
  const found = compute(S, pairs.kinds, h, points);
  const weight = reduction === "sum" ? 1 : 1 / Math.max(reduction === "mean" ? found.units : found.nonzero, 1);
  found.derivatives.forEach((derivative, k) => (S.grad[k] += weight * derivative));
  return weight * found.total;
};

// A loss whose formula depends on some hyper-parameters: a function for each of few values, of which the nearest is taken.
const choose = (places, choices, versions) => (x, labels, n, d, proxies, classes, values) => {
  let version = 0;
  places.forEach((place, k) => {
    const gaps = choices[k].map((known) => Math.abs(known - values[place]));
    version = version * gaps.length + gaps.indexOf(Math.min(...gaps));
  });
  return versions[version](x, labels, n, d, proxies, classes, values);
};

// A loss that is known by the weights of a positive and a negative pair at some cosines: they are interpolated, and their
// integral is its value.
const byCurves = (cosines, positive, negative) => {
  const last = cosines.length - 1, weights = [null, positive.map((w) => -w), negative];
  const areas = weights.map((list) => {
    const area = [0];
    for (let k = 1; list && k <= last; k++) area.push(area[k - 1] + ((list[k] + list[k - 1]) / 2) * (cosines[k] - cosines[k - 1]));
    return area;
  });
  return (S, pairs) => {
    let value = 0;
    pairs.kinds.forEach((side, at) => {
      if (!side) return;
      const s = Math.min(Math.max(S.data[at], cosines[0]), cosines[last]), list = weights[side];
      let k = 0;
      while (k < last - 1 && cosines[k + 1] < s) k++;
      const share = (s - cosines[k]) / (cosines[k + 1] - cosines[k]), derivative = list[k] + share * (list[k + 1] - list[k]);
      value += areas[side][k] + ((list[k] + derivative) / 2) * (s - cosines[k]);
      S.grad[at] += derivative;
    });
    return value;
  };
};
// Losses, or parts of losses, that are no formula; a function is named after the class that it belongs to and its role.
// A matrix function takes the kinds of pairs (1 positive, 2 negative) and returns the sum over units, their number, that of those that are not zero, and the derivatives of the sum.

const begin = (S) => ({ total: 0, units: 0, nonzero: 0, derivatives: new Float64Array(S.rows * S.columns) });

// every positive pair against the negatives of its anchor, seen from both its ends
function AngularLoss_matrix(S, pairs, h) {
  const found = begin(S), n = S.rows;
  const tangent = Math.tan((h.alpha * Math.PI) / 180) ** 2;
  const [push, pull] = [4 * tangent, 2 * (1 + tangent)];
  const powers = S.data.map((s) => Math.exp(push * (s - 1)));
  for (let a = 0; a < n; a++)
    for (let p = 0; p < n; p++) {
      if (pairs[a * n + p] !== 1) continue;
      let sum = 0, negatives = 0;
      for (let k = 0; k < n; k++)
        if (pairs[a * n + k] === 2) {
          sum += powers[a * n + k] * powers[p * n + k];
          negatives++;
        }
      if (!negatives) continue;
      const logit = Math.log(sum) + 2 * push - pull * S.data[a * n + p];
      const value = softplus(logit), derivative = sigmoid(logit);
      found.total += value;
      found.units++;
      found.nonzero += value !== 0;
      found.derivatives[a * n + p] -= derivative * pull;
      for (let k = 0; k < n; k++)
        if (pairs[a * n + k] === 2) {
          const share = (derivative * push * powers[a * n + k] * powers[p * n + k]) / sum;
          found.derivatives[a * n + k] += share;
          found.derivatives[p * n + k] += share;
        }
    }
  return found;
}

// where a pair lies among the nodes of a histogram: the node below it, its share of the next one, and whether it is inside
const node = (position, bins) => {
  const inside = position >= 0 && position <= bins;
  const at = Math.min(Math.max(position, 0), bins), low = Math.min(Math.floor(at), bins - 1);
  return [low, at - low, inside];
};

function FastAPLoss_matrix(S, pairs, h) {
  const found = begin(S), { rows: m, columns: n } = S, bins = h.bins, scale = -bins / 4;
  for (let i = 0; i < m; i++) {
    const near = new Float64Array(bins + 1), far = new Float64Array(bins + 1);
    let positives = 0;
    for (let j = 0; j < n; j++) {
      if (!pairs[i * n + j]) continue;
      const [low, share] = node(S.data[i * n + j] * scale, bins), histogram = pairs[i * n + j] === 1 ? near : far;
      histogram[low] += 1 - share;
      histogram[low + 1] += share;
      positives += pairs[i * n + j] === 1;
    }
    if (!positives) continue;
    // one minus precision is the share of negatives up to a node
    let value = 0, [nearSum, farSum] = [0, 0];
    const byNear = new Float64Array(bins + 1), byFar = new Float64Array(bins + 1), errors = new Float64Array(bins + 1);
    for (let l = 0; l <= bins; l++) {
      [nearSum, farSum] = [nearSum + near[l], farSum + far[l]];
      const all = nearSum + farSum || 1;
      errors[l] = farSum / all;
      value += (near[l] * errors[l]) / positives;
      [byNear[l], byFar[l]] = [(-near[l] * farSum) / all / all / positives, (near[l] * nearSum) / all / all / positives];
    }
    for (let l = bins - 1; l >= 0; l--) [byNear[l], byFar[l]] = [byNear[l] + byNear[l + 1], byFar[l] + byFar[l + 1]];
    for (let l = 0; l <= bins; l++) byNear[l] += errors[l] / positives;
    for (let j = 0; j < n; j++) {
      if (!pairs[i * n + j]) continue;
      const [low, , inside] = node(S.data[i * n + j] * scale, bins), by = pairs[i * n + j] === 1 ? byNear : byFar;
      if (inside) found.derivatives[i * n + j] = scale * (by[low + 1] - by[low]);
    }
    found.total += value;
    found.units++;
    found.nonzero += value !== 0;
  }
  return found;
}

function HistogramLoss_matrix(S, pairs, h) {
  const found = begin(S), bins = h.bins, scale = bins / 2;
  const histograms = [null, new Float64Array(bins + 1), new Float64Array(bins + 1)], counts = [0, 0, 0];
  pairs.forEach((side, k) => {
    if (!side) return;
    const [low, share] = node((S.data[k] + 1) * scale, bins);
    histograms[side][low] += 1 - share;
    histograms[side][low + 1] += share;
    counts[side]++;
  });
  const [, near, far] = histograms, [, positives, negatives] = counts;
  if (!positives || !negatives) return found;
  const byFar = new Float64Array(bins + 1), byNear = new Float64Array(bins + 2);
  for (let l = 0, sum = 0; l <= bins; l++) {
    sum += near[l] / positives;
    byFar[l] = sum / negatives;
    found.total += byFar[l] * far[l];
  }
  for (let l = bins; l >= 0; l--) byNear[l] = byNear[l + 1] + far[l] / negatives / positives;
  pairs.forEach((side, k) => {
    if (!side) return;
    const [low, , inside] = node((S.data[k] + 1) * scale, bins), by = side === 1 ? byNear : byFar;
    if (inside) found.derivatives[k] = scale * (by[low + 1] - by[low]);
  });
  found.units = 1;
  found.nonzero = +(found.total !== 0);
  return found;
}

// every positive pair, half from either end, against the negatives of both
function LiftedStructureLoss_matrix(S, pairs, h) {
  const found = begin(S), n = S.rows;
  const presses = new Float64Array(n).fill(-1e6), peaks = new Float64Array(n).fill(-Infinity), sums = new Float64Array(n);
  const derivatives = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < n; k++) if (pairs[i * n + k] === 2) peaks[i] = Math.max(peaks[i], h.margin + S.data[i * n + k]);
    for (let k = 0; k < n; k++) if (pairs[i * n + k] === 2) sums[i] += Math.exp(h.margin + S.data[i * n + k] - peaks[i]);
    if (sums[i]) presses[i] = Math.log(sums[i]) + peaks[i];
  }
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      if (pairs[i * n + j] !== 1 || !(sums[i] || sums[j])) continue;
      const most = Math.max(presses[i], presses[j]);
      const joint = most + Math.log(Math.exp(presses[i] - most) + Math.exp(presses[j] - most));
      const gap = Math.max(joint - S.data[i * n + j], 0);
      found.total += (gap * gap) / 4;
      found.units += 0.5;
      found.nonzero += gap > 0 ? 0.5 : 0;
      found.derivatives[i * n + j] -= gap / 2;
      derivatives[i] += (gap / 2) * Math.exp(presses[i] - joint);
      derivatives[j] += (gap / 2) * Math.exp(presses[j] - joint);
    }
  for (let i = 0; i < n; i++)
    for (let k = 0; k < n; k++)
      if (pairs[i * n + k] === 2) found.derivatives[i * n + k] += (derivatives[i] * Math.exp(h.margin + S.data[i * n + k] - peaks[i])) / sums[i];
  return found;
}

// numbers in order, with the sums from each on
const ordered = (list) => {
  const values = Float64Array.from(list).sort(), sums = new Float64Array(values.length + 1);
  for (let k = values.length - 1; k >= 0; k--) sums[k] = sums[k + 1] + values[k];
  return { values, sums };
};
// how many are below a limit, or at it too
const below = ({ values }, limit, at = false) => {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit || (at && values[middle] === limit)) low = middle + 1;
    else high = middle;
  }
  return low;
};

// positive pairs against the negative pairs that do not touch their class: all, less those that do
function QuadrupletLoss_matrix(S, pairs, h, points) {
  const found = begin(S), n = S.rows, { labels } = points;
  const lists = () => [[], ...Array.from({ length: points.classes }, () => [])]; // all, then by class
  const [limits, negatives] = [lists(), lists()];
  for (let i = 0, ij = 0; i < n; i++)
    for (let j = 0; j < n; j++, ij++) {
      if (pairs[ij] === 1) for (const which of [0, labels[i] + 1]) limits[which].push(S.data[ij] - h.margin2);
      if (pairs[ij] === 2) for (const which of [0, labels[i] + 1, labels[j] + 1]) negatives[which].push(S.data[ij]);
    }
  const [low, high] = [limits.map(ordered), negatives.map(ordered)];
  for (let i = 0, ij = 0; i < n; i++)
    for (let j = 0; j < n; j++, ij++) {
      const own = labels[i] + 1;
      if (pairs[ij] === 1) {
        const limit = S.data[ij] - h.margin2;
        const [first, skipped] = [below(high[0], limit, true), below(high[own], limit, true)];
        const count = high[0].values.length - first - (high[own].values.length - skipped);
        found.total += high[0].sums[first] - high[own].sums[skipped] - count * limit;
        found.units += high[0].values.length - high[own].values.length;
        found.nonzero += count;
        found.derivatives[ij] -= count;
      } else if (pairs[ij] === 2) {
        const s = S.data[ij];
        found.derivatives[ij] += below(low[0], s) - below(low[own], s) - below(low[labels[j] + 1], s);
      }
    }
  return found;
}

// every positive pair against every negative pair
function QuadrupletWiseLoss_matrix(S, pairs, h) {
  const found = begin(S), near = [], far = [];
  pairs.forEach((side, k) => {
    if (side === 1) near.push(S.data[k] - h.margin);
    if (side === 2) far.push(S.data[k]);
  });
  const [low, high] = [ordered(near), ordered(far)];
  pairs.forEach((side, k) => {
    if (side === 1) {
      const limit = S.data[k] - h.margin, first = below(high, limit, true), count = far.length - first;
      found.total += high.sums[first] - count * limit;
      found.units += far.length;
      found.nonzero += count;
      found.derivatives[k] -= count;
    } else if (side === 2) found.derivatives[k] += below(low, S.data[k]);
  });
  return found;
}

// a sample sees so many of the nearest proxies, and all of its own class; their cosines are added up by class
function ProxyGMLLoss_matrix(S, pairs, h, points) {
  const found = begin(S), { rows: m, columns: n } = S, { classes, centers } = points;
  for (let i = 0; i < m; i++) {
    const row = S.data.subarray(i * n, (i + 1) * n), own = (j) => pairs[i * n + j] === 1;
    const order = Array.from(row.keys()).sort((a, b) => row[b] + 4 * own(b) - row[a] - 4 * own(a));
    const kept = new Uint8Array(n), sums = new Float64Array(classes), seen = new Uint8Array(classes);
    order.forEach((j, rank) => (kept[j] = rank < h.neighbors || own(j)));
    kept.forEach((keep, j) => {
      if (!keep) return;
      sums[Math.floor(j / centers)] += row[j];
      seen[Math.floor(j / centers)] = 1;
    });
    const [value, shares] = among(sums, seen, points.labels[i]);
    kept.forEach((keep, j) => keep && (found.derivatives[i * n + j] = shares[Math.floor(j / centers)]));
    found.total += value;
    found.units++;
    found.nonzero += value !== 0;
  }
  return found;
}
// minus the logarithm of a class's share in a softmax, and its derivatives
const among = (logits, seen, own) => {
  const peak = logits.reduce((most, each, k) => (seen[k] ? Math.max(most, each) : most), -Infinity);
  const powers = logits.map((each, k) => (seen[k] ? Math.exp(each - peak) : 0));
  const sum = powers.reduce((a, b) => a + b, 0);
  return [Math.log(sum) + peak - logits[own], powers.map((each, k) => each / sum - (k === own))];
};
function ProxyGMLLoss_alone(points, h) {
  const { tape, proxies, classes, centers, owners } = points;
  const S = points.compare("proxies against proxies", { kind: "cosine", normalize: true }, proxies, proxies);
  const all = new Uint8Array(classes).fill(1);
  let value = 0;
  for (let i = 0; i < S.rows; i++) {
    const sums = new Float64Array(classes);
    for (let j = 0; j < S.rows; j++) sums[owners[j]] += S.data[i * S.rows + j];
    const [part, shares] = among(sums, all, owners[i]);
    value += (h.weight * part) / S.rows;
    for (let j = 0; j < S.rows; j++) S.grad[i * S.rows + j] += (h.weight * shares[owners[j]]) / S.rows;
  }
  return value;
}

// the similarities to the centers of a class, weighted by their softmax
function SoftTripleLoss_pool(tape, S, centers, h) {
  const pooled = matrixOf(S.rows, S.columns / centers), shares = new Float64Array(S.data.length);
  for (let at = 0; at < pooled.data.length; at++) {
    let [peak, sum] = [-Infinity, 0];
    for (let k = at * centers; k < (at + 1) * centers; k++) peak = Math.max(peak, S.data[k]);
    for (let k = at * centers; k < (at + 1) * centers; k++) sum += shares[k] = Math.exp((S.data[k] - peak) / h.gamma);
    for (let k = at * centers; k < (at + 1) * centers; k++) pooled.data[at] += (shares[k] /= sum) * S.data[k];
  }
  tape.add(() =>
    S.data.forEach((s, k) => {
      const at = Math.floor(k / centers);
      S.grad[k] += pooled.grad[at] * shares[k] * (1 + (s - pooled.data[at]) / h.gamma);
    }));
  return pooled;
}
// the mean distance between the centers of a class, halved
function SoftTripleLoss_alone(points, h) {
  const { tape, proxies, classes, centers } = points;
  if (centers === 1) return 0;
  const U = unit(tape, proxies), d = U.columns, weight = h.tau / (classes * centers * (centers - 1));
  let value = 0;
  for (let k = 0; k < U.rows; k++)
    for (let l = k + 1; l < (Math.floor(k / centers) + 1) * centers; l++) {
      let cosine = 0;
      for (let e = 0; e < d; e++) cosine += U.data[k * d + e] * U.data[l * d + e];
      const squared = 2 + 1e-5 - 2 * cosine, distance = Math.sqrt(Math.max(squared, 1e-12));
      value += weight * distance;
      if (squared < 1e-12) continue;
      for (let e = 0; e < d; e++) {
        U.grad[k * d + e] -= (weight * U.data[l * d + e]) / distance;
        U.grad[l * d + e] -= (weight * U.data[k * d + e]) / distance;
      }
    }
  return value;
}

// ---- one number for each anchor

// a function of each row, with its derivatives
const ofRows = (tape, X, value, derivative) => {
  const made = matrixOf(X.rows, 1);
  made.data.forEach((_, i) => (made.data[i] = value(X.data.subarray(i * X.columns, (i + 1) * X.columns))));
  tape.add(() => X.grad.forEach((_, k) => (X.grad[k] += made.grad[Math.floor(k / X.columns)] * derivative(X.data[k], made.data[Math.floor(k / X.columns)]))));
  return made;
};
const NPairsLoss_squared_norm = ({ tape, samples }) => ofRows(tape, samples, (row) => row.reduce((sum, x) => sum + x * x, 0), (x) => 2 * x);
const SphereFaceLoss_embedding_norm = ({ tape, samples }) => ofRows(tape, samples, (row) => Math.hypot(...row), (x, norm) => (norm ? x / norm : 0));
const SNRContrastiveLoss_absolute_sum = ({ tape, samples }) => {
  const signed = ofRows(tape, unit(tape, samples), (row) => row.reduce((sum, x) => sum + x, 0), () => 1);
  return ofRows(tape, signed, ([sum]) => Math.abs(sum), Math.sign);
};
// the boundary is the same for all anchors
const MarginLoss_boundary = ({ samples }, h) => matrixOf(samples.rows, 1, new Float64Array(samples.rows).fill(h.beta));
const RankedListLoss_number_of_references = ({ samples }) => matrixOf(samples.rows, 1, new Float64Array(samples.rows).fill(samples.rows));
const RecallAtKLoss_count_anchors = RankedListLoss_number_of_references;
const MarginLoss_alone = (points, h) => h.nu * h.beta;

// ---- grades: the points of the page have classes, so that a pair is relevant or not

const relevances = ({ labels }) =>
  matrixOf(labels.length, labels.length, Float64Array.from({ length: labels.length ** 2 }, (_, ij) => {
    const i = Math.floor(ij / labels.length), j = ij % labels.length;
    return i !== j && labels[i] === labels[j] ? 1 : 0;
  }));
const positivesOf = ({ labels }) => Array.from(labels, (own) => labels.filter((other) => other === own).length - 1);
const NDCGLoss_relevance = relevances;
const NDCGLoss_ideal_gain = (points) => {
  const discount = (count) => Array.from({ length: count }, (_, k) => 1 / Math.log2(k + 2)).reduce((sum, x) => sum + x, 0);
  return matrixOf(points.labels.length, 1, Float64Array.from(positivesOf(points), discount));
};
const HAPLoss_relevance = relevances;
const HAPLoss_gain_at = (points) => {
  const gains = relevances(points), counts = positivesOf(points);
  gains.data.forEach((gain, ij) => (gains.data[ij] = gain / Math.max(counts[Math.floor(ij / counts.length)], 1)));
  return gains;
};
return {
"Angular": {
about: "Angular loss: penalizes large angles at the negative of each triplet's triangle.",
cite: "Wang et al. 2017",
kind: "AngularLoss",
miner: null,
formula: "\\log\\Bigl(1+\\sum_{n\\in N_a}e^{4\\tan^2\\!\\alpha\\,(x_a+x_p)\\cdot x_n-2(1+\\tan^2\\!\\alpha)\\,x_a\\cdot x_p}\\Bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "angle in degrees", "value": 40.0, "least": 30.0, "most": 60.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["alpha"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [averaged("mean", AngularLoss_matrix)] }] }),
},
"ArcFace": {
about: "ArcFace: an additive margin on the angle.",
cite: "Deng et al. 2019",
kind: "ArcFaceLoss",
miner: null,
formula: "-\\log\\frac{e^{\\sigma\\cos(\\theta_y+m)}}{e^{\\sigma\\cos(\\theta_y+m)}+\\sum_{c\\ne y}e^{\\sigma\\cos\\theta_c}}",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin in degrees", "value": 28.6, "least": 0.0, "most": 60.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 1.0, "most": 256.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](scale * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives](scale * where(s < (-cos(margin * 0.017453292519943295)), s - ((margin * 0.017453292519943295) * sin(margin * 0.017453292519943295)), (cos(margin * 0.017453292519943295) * s) - (sin(margin * 0.017453292519943295) * sqrt((1.0 - s) * (1.0 + s)))))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  const c0 = h_margin * 0.017453292519943295;
  const c1 = Math.cos(c0);
  const c2 = -c1;
  const c3 = Math.sin(c0);
  const c4 = c0 * c3;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * ((s < c2) ? (s - c4) : (c1 * s - c3 * Math.sqrt(Math.max((1 - s) * (1 + s), 0))));
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](scale * where(s < (-cos(margin * 0.017453292519943295)), s - ((margin * 0.017453292519943295) * sin(margin * 0.017453292519943295)), (cos(margin * 0.017453292519943295) * s) - (sin(margin * 0.017453292519943295) * sqrt((1.0 - s) * (1.0 + s)))))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = s < c2;
      const x1 = 1 - s;
      const x2 = 1 + s;
      const x3 = x1 * x2;
      const x4 = 0 < x3;
      const v = h_scale * (x0 ? (s - c4) : (c1 * s - c3 * Math.sqrt(Math.max(x3, 0))));
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (h_scale * ((x0 ? 1 : 0) + (x0 ? 0 : (c1 + (-(x4 ? (((0.5 / Math.sqrt(Math.max(x4 ? x3 : 1, 0))) * ((-x2) + x1)) * c3) : 0))))));
    }
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  return value;
}] }] }),
},
"Binomial deviance": {
about: "Binomial deviance: a soft contrastive loss.",
cite: "Yi et al. 2014",
kind: "BinomialDevianceLoss",
miner: null,
formula: "\\frac{1}{|P_i|}\\sum_{j\\in P_i}\\log\\bigl(1+e^{\\alpha(\\gamma-s_{ij})}\\bigr) +\\frac{1}{|N_i|}\\sum_{k\\in N_i}\\log\\bigl(1+e^{\\beta(s_{ik}-\\gamma)}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["alpha", "beta", "base"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_alpha = h["alpha"];
  const h_base = h["base"];
  const h_beta = h["beta"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // mean[positives](softplus(alpha * (base - s)))
  const f2 = new Float64Array(m);
  const f2_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0, count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = softplus(h_alpha * (h_base - s));
      sum += v; count++;
    }
    f2[i] = sum / Math.max(count, 1);
    f2_count[i] = count;
  }
  // mean[negatives](softplus(beta * (s - base)))
  const f3 = new Float64Array(m);
  const f3_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0, count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = softplus(h_beta * (s - h_base));
      sum += v; count++;
    }
    f3[i] = sum / Math.max(count, 1);
    f3_count[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? (f2[i] + f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    g2[i] += (0 < f0[i]) && (0 < f1[i]) ? w : 0;
    g3[i] += (0 < f0[i]) && (0 < f1[i]) ? w : 0;
  }
  // backward: mean[negatives](softplus(beta * (s - base)))
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const count = f3_count[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g * (1 / count);
      grad[ij] += w * (sigmoid(h_beta * (s - h_base)) * h_beta);
    }
  }
  // backward: mean[positives](softplus(alpha * (base - s)))
  const c0 = -h_alpha;
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const count = f2_count[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g * (1 / count);
      grad[ij] += w * (sigmoid(h_alpha * (h_base - s)) * c0);
    }
  }
  return value;
}] }] }),
},
"Binomial deviance + VTHM": {
about: "Binomial deviance: a soft contrastive loss.",
cite: "Yi et al. 2014",
kind: "BinomialDevianceLoss",
miner: "ValidTripletMiner",
formula: "\\frac{1}{|P_i|}\\sum_{j\\in P_i}\\log\\bigl(1+e^{\\alpha(\\gamma-s_{ij})}\\bigr) +\\frac{1}{|N_i|}\\sum_{k\\in N_i}\\log\\bigl(1+e^{\\beta(s_{ik}-\\gamma)}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "miner.margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["alpha", "beta", "base", "miner.margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: (S, pairs, h) => {
  const { rows: m, columns: n, data } = S;
  const { positives, negatives } = pairs;
  const h_miner_margin = h["miner.margin"];
  // max[negatives](s)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = -Infinity, ties = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      if (v > best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f0[i] = best;
  }
  // min[positives](s)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = Infinity, ties = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      if (v < best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f1[i] = best;
  }
  const kept = new Uint8Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if ((s - h_miner_margin) < f0[i]) kept[ij] = 1;
    }
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (f1[i] < (s + h_miner_margin)) kept[ij] = 2;
    }
  }
  return relationOf(kept, m, n);
}, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_alpha = h["alpha"];
  const h_base = h["base"];
  const h_beta = h["beta"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // mean[positives](softplus(alpha * (base - s)))
  const f2 = new Float64Array(m);
  const f2_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0, count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = softplus(h_alpha * (h_base - s));
      sum += v; count++;
    }
    f2[i] = sum / Math.max(count, 1);
    f2_count[i] = count;
  }
  // mean[negatives](softplus(beta * (s - base)))
  const f3 = new Float64Array(m);
  const f3_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0, count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = softplus(h_beta * (s - h_base));
      sum += v; count++;
    }
    f3[i] = sum / Math.max(count, 1);
    f3_count[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? (f2[i] + f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    g2[i] += (0 < f0[i]) && (0 < f1[i]) ? w : 0;
    g3[i] += (0 < f0[i]) && (0 < f1[i]) ? w : 0;
  }
  // backward: mean[negatives](softplus(beta * (s - base)))
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const count = f3_count[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g * (1 / count);
      grad[ij] += w * (sigmoid(h_beta * (s - h_base)) * h_beta);
    }
  }
  // backward: mean[positives](softplus(alpha * (base - s)))
  const c0 = -h_alpha;
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const count = f2_count[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g * (1 / count);
      grad[ij] += w * (sigmoid(h_alpha * (h_base - s)) * c0);
    }
  }
  return value;
}] }] }),
},
"Circle": {
about: "Circle loss: each similarity is weighted by its distance to its optimum.",
cite: "Sun et al. 2020",
kind: "CircleLoss",
miner: null,
formula: "\\mathrm{softplus}\\Bigl(\\log\\sum_{j\\in P_i}e^{-\\gamma\\,[1+m-s_{ij}]_+(s_{ij}-1+m)} +\\log\\sum_{k\\in N_i}e^{\\gamma\\,[s_{ik}+m]_+(s_{ik}-m)}\\Bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "relaxation", "value": 0.4, "least": 0.0, "most": 0.6, "log": false, "whole": false, "choices": null}, {"name": "gamma", "help": "scale", "value": 80.0, "least": 8.0, "most": 512.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "gamma"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_gamma = h["gamma"];
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // logsumexp[positives](((-gamma) * stop_gradient(relu((1.0 + margin) - s))) * (s - (1.0 - margin)))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  const c0 = -h_gamma;
  const c1 = 1 + h_margin;
  const c2 = 1 - h_margin;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = (c0 * (Math.max(c1 - s, 0))) * (s - c2);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  // logsumexp[negatives]((gamma * stop_gradient(relu(s + margin))) * (s - margin))
  const f3 = new Float64Array(m);
  const f3_peak = new Float64Array(m);
  const f3_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = (h_gamma * (Math.max(s + h_margin, 0))) * (s - h_margin);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f3[i] = Math.log(Math.max(total, 1)) + peak;
    f3_peak[i] = peak;
    f3_total[i] = total;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? softplus(f2[i] + f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    g2[i] += (0 < f0[i]) && (0 < f1[i]) ? w * (sigmoid(f2[i] + f3[i])) : 0;
    g3[i] += (0 < f0[i]) && (0 < f1[i]) ? w * (sigmoid(f2[i] + f3[i])) : 0;
  }
  // backward: logsumexp[negatives]((gamma * stop_gradient(relu(s + margin))) * (s - margin))
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const peak = f3_peak[i];
    const total = f3_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = h_gamma * (Math.max(s + h_margin, 0));
      const v = x0 * (s - h_margin);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * x0;
    }
  }
  // backward: logsumexp[positives](((-gamma) * stop_gradient(relu((1.0 + margin) - s))) * (s - (1.0 - margin)))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = c0 * (Math.max(c1 - s, 0));
      const v = x0 * (s - c2);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * x0;
    }
  }
  return value;
}] }] }),
},
"Contrastive": {
about: "Contrastive loss: pull positives above one margin, push negatives below another.",
cite: "Hadsell et al. 2006",
kind: "ContrastiveLoss",
miner: null,
formula: "\\frac{1}{|\\mathcal P|}\\sum_{(i,j)\\in\\mathcal P}[m_+ - s_{ij}]_+ + \\frac{1}{|\\mathcal N|}\\sum_{(i,k)\\in\\mathcal N}[s_{ik} - m_-]_+",
similarity: "cosine",
centers: 0,
parameters: [{"name": "positive_margin", "help": "positives above this similarity cost nothing", "value": 1.0, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "negative_margin", "help": "negatives below this similarity cost nothing", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["positive_margin", "negative_margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_positive_margin = h["positive_margin"];
  const h_negative_margin = h["negative_margin"];
  // sum[positives](relu(positive_margin - s))
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = Math.max(h_positive_margin - s, 0);
      sum += v;
    }
    f0[i] = sum;
  }
  let f1 = 0;
  for (let i = 0; i < m; i++) {
    f1 += f0[i];
  }
  // count[positives](nonzero(relu(positive_margin - s)))
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if (Math.abs(Math.max(h_positive_margin - s, 0)) > 1.7763568394002505e-15) count++;
    }
    f2[i] = count;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += f2[i];
  }
  // sum[negatives](relu(s - negative_margin))
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = Math.max(s - h_negative_margin, 0);
      sum += v;
    }
    f4[i] = sum;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += f4[i];
  }
  // count[negatives](nonzero(relu(s - negative_margin)))
  const f6 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (Math.abs(Math.max(s - h_negative_margin, 0)) > 1.7763568394002505e-15) count++;
    }
    f6[i] = count;
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += f6[i];
  }
  const value = f1 / Math.max(f3, 1) + f5 / Math.max(f7, 1);
  const g0 = new Float64Array(m);
  let g1 = 0;
  const g4 = new Float64Array(m);
  let g5 = 0;
  g1 += 1 / Math.max(f3, 1);
  g5 += 1 / Math.max(f7, 1);
  for (let i = 0; i < m; i++) {
    const w = g5;
    g4[i] += w;
  }
  // backward: sum[negatives](relu(s - negative_margin))
  for (let i = 0; i < m; i++) {
    const g = g4[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += 0 < (s - h_negative_margin) ? w : 0;
    }
  }
  for (let i = 0; i < m; i++) {
    const w = g1;
    g0[i] += w;
  }
  // backward: sum[positives](relu(positive_margin - s))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += 0 < (h_positive_margin - s) ? -w : 0;
    }
  }
  return value;
}] }] }),
},
"CosFace": {
about: "CosFace: an additive margin on the cosine.",
cite: "Wang et al. 2018",
kind: "CosFaceLoss",
miner: null,
formula: "-\\log\\frac{e^{\\sigma(\\cos\\theta_y-m)}}{e^{\\sigma(\\cos\\theta_y-m)}+\\sum_{c\\ne y}e^{\\sigma\\cos\\theta_c}}",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin", "value": 0.35, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 1.0, "most": 128.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](scale * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives](scale * (s - margin))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * (s - h_margin);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](scale * (s - margin))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * (s - h_margin);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  return value;
}] }] }),
},
"FastAP": {
about: "FastAP: one minus the average precision of each anchor's ranking, through soft histograms of distances.",
cite: "Cakir et al. 2019",
kind: "FastAPLoss",
miner: null,
formula: "1-\\frac{1}{|P_i|}\\sum_l\\frac{h^+_l\\,H^+_l}{H_l}",
similarity: "squared_euclidean",
centers: 0,
parameters: [{"name": "bins", "help": "number of histogram intervals", "value": 10, "least": 5, "most": 50, "log": false, "whole": true, "choices": null}],
exact: true,
run: lossOf({ names: ["bins"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "squared_euclidean", normalize: true }, pool: null, mine: null, inputs: [], functions: [averaged("mean", FastAPLoss_matrix)] }] }),
},
"Generalized lifted structure": {
about: "Generalized lifted structure: all positives and all negatives of an anchor, in one hinge.",
cite: "Hermans et al. 2017",
kind: "GeneralizedLiftedStructureLoss",
miner: null,
formula: "\\Bigl[\\log\\sum_{j\\in P_i}e^{\\lambda-s_{ij}}+\\log\\sum_{k\\in N_i}e^{s_{ik}}\\Bigr]_+",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "multiplies the similarities", "value": 1.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_margin = h["margin"];
  const h_scale = h["scale"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // logsumexp[positives](margin - (scale * s))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_margin - h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  // logsumexp[negatives](scale * s)
  const f3 = new Float64Array(m);
  const f3_peak = new Float64Array(m);
  const f3_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f3[i] = Math.log(Math.max(total, 1)) + peak;
    f3_peak[i] = peak;
    f3_total[i] = total;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? Math.max(f2[i] + f3[i], 0) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    g2[i] += (0 < f0[i]) && (0 < f1[i]) ? w * ((0 < (f2[i] + f3[i])) ? 1 : 0) : 0;
    g3[i] += (0 < f0[i]) && (0 < f1[i]) ? w * ((0 < (f2[i] + f3[i])) ? 1 : 0) : 0;
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const peak = f3_peak[i];
    const total = f3_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  // backward: logsumexp[positives](margin - (scale * s))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_margin - h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (-h_scale);
    }
  }
  return value;
}] }] }),
},
"HAP": {
about: "Hierarchical average precision: one minus H-AP, in which a mistake costs less if more levels are correct.",
cite: "Ramzi et al. 2022",
kind: "HAPLoss",
miner: null,
formula: "1-\\frac{\\sum_p \\mathrm{hrank}_p/\\mathrm{rank}_p}{\\sum_p \\mathrm{rel}_p},\\quad \\mathrm{rel}_{ij}=\\frac{(l_{ij}/L)^\\alpha}{|\\{k:l_{ik}=l_{ij}\\}|},\\quad \\mathrm{hrank}_p=\\mathrm{rel}_p+\\sum_{j\\ne p}\\min(\\mathrm{rel}_j,\\mathrm{rel}_p)\\,[d_{pj}\\ge0]",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature of the step", "value": 0.01, "least": 0.001, "most": 0.1, "log": true, "whole": false, "choices": null}, {"name": "rho", "help": "slope for large errors", "value": 100.0, "least": 1.0, "most": 1000.0, "log": true, "whole": false, "choices": null}, {"name": "delta", "help": "where the line begins", "value": 0.05, "least": 0.01, "most": 0.2, "log": false, "whole": false, "choices": null}, {"name": "start", "help": "cost of an error, minus one half", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "alpha", "help": "exponent of the relevance of a level", "value": 1.0, "least": 0.25, "most": 4.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature", "rho", "delta", "start", "alpha"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [HAPLoss_gain_at, HAPLoss_relevance], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_delta = h["delta"];
  const h_rho = h["rho"];
  const h_start = h["start"];
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[positives](where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, where(gain < gain_p, gain, gain_p)))
  const f1 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const v = ((Math.abs(x0) > 1.7763568394002505e-15) && (x0 < 0)) ? 0 : ((inputs[0].data[ij] < inputs[0].data[ip]) ? inputs[0].data[ij] : inputs[0].data[ip]);
        sum += v;
      }
      f1[ip] = sum;
    }
  }
  // sum[positives](where(relevance < relevance_p, where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)), where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, 1.0)))
  const f2 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = Math.abs(x0) > 1.7763568394002505e-15;
        const x2 = sigmoid(x0 / h_temperature);
        const v = (inputs[1].data[ij] < inputs[1].data[ip]) ? ((x1 && (0 < x0)) ? ((h_delta < x0) ? (h_rho * (x0 - h_delta) + 1.44) : (h_start + x2)) : x2) : ((x1 && (x0 < 0)) ? 0 : 1);
        sum += v;
      }
      f2[ip] = sum;
    }
  }
  // sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))
  const f3 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = sigmoid(x0 / h_temperature);
        const v = ((Math.abs(x0) > 1.7763568394002505e-15) && (0 < x0)) ? ((h_delta < x0) ? (h_rho * (x0 - h_delta) + 1.44) : (h_start + x1)) : x1;
        sum += v;
      }
      f3[ip] = sum;
    }
  }
  // sum[each positive](where(0.0 < count[positives](1.0), sum[positives](where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, where(gain < gain_p, gain, gain_p))), 0.0) / at_least(where(0.0 < count[positives](1.0), sum[positives](where(relevance < relevance_p, where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)), where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, 1.0))), 0.0) + sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature))), 1.0))
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = (x0 ? f1[ip] : 0) / Math.max((x0 ? f2[ip] : 0) + f3[ip], 1);
      sum += v;
    }
    f4[i] = sum;
  }
  // sum[positives](gain)
  const f5 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const v = inputs[0].data[ij];
      sum += v;
    }
    f5[i] = sum;
  }
  let f6 = 0;
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    const x1 = x0 ? f5[i] : 0;
    f6 += x0 ? (1 - (x0 ? f4[i] : 0) / ((0 < x1) ? x1 : 1)) : 0;
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += 0 < f0[i];
  }
  const value = f6 / Math.max(f7, 1);
  const g1 = new Float64Array(m * n);
  const g2 = new Float64Array(m * n);
  const g3 = new Float64Array(m * n);
  const g4 = new Float64Array(m);
  const g5 = new Float64Array(m);
  let g6 = 0;
  g6 += 1 / Math.max(f7, 1);
  for (let i = 0; i < m; i++) {
    const w = g6;
    const x0 = 0 < f0[i];
    const x1 = x0 ? f5[i] : 0;
    const x2 = 0 < x1;
    const x3 = x2 ? x1 : 1;
    g4[i] += x0 ? w * (-(x0 ? (1 / x3) : 0)) : 0;
    g5[i] += x0 ? w * (-(x2 ? (x0 ? ((-(x0 ? f4[i] : 0)) / (x3 * x3)) : 0) : 0)) : 0;
  }
  // backward: sum[positives](gain)
  for (let i = 0; i < m; i++) {
    const g = g5[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const w = g;
      inputs[0].grad[ij] += w;
    }
  }
  // backward: sum[each positive](where(0.0 < count[positives](1.0), sum[positives](where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, where(gain < gain_p, gain, gain_p))), 0.0) / at_least(where(0.0 < count[positives](1.0), sum[positives](where(relevance < relevance_p, where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)), where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, 1.0))), 0.0) + sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature))), 1.0))
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    const g = g4[i];
    if (g === 0) continue;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x1 = (x0 ? f2[ip] : 0) + f3[ip];
      const x2 = Math.max(x1, 1);
      const x3 = (-(x0 ? f1[ip] : 0)) / (x2 * x2);
      const x4 = x1 < 1;
      const w = g;
      g1[ip] += x0 ? w * (1 / x2) : 0;
      g2[ip] += x4 ? 0 : w * (x0 ? x3 : 0);
      g3[ip] += x4 ? 0 : w * x3;
    }
  }
  // backward: sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))
  const c0 = 1 / h_temperature;
  const c1 = -h_rho;
  const c2 = -c0;
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g3[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = (Math.abs(x0) > 1.7763568394002505e-15) && (0 < x0);
        const x2 = h_delta < x0;
        const x3 = sigmoid(x0 / h_temperature);
        const x4 = x3 * (1 - x3);
        const x5 = x4 * c0;
        const x6 = x4 * c2;
        const w = g;
        grad[ij] += w * ((x1 ? ((x2 ? h_rho : 0) + (x2 ? 0 : x5)) : 0) + (x1 ? 0 : x5));
        d1 += w * ((x1 ? ((x2 ? c1 : 0) + (x2 ? 0 : x6)) : 0) + (x1 ? 0 : x6));
      }
      grad[ip] += d1;
    }
  }
  // backward: sum[positives](where(relevance < relevance_p, where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)), where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, 1.0)))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g2[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = (Math.abs(x0) > 1.7763568394002505e-15) && (0 < x0);
        const x2 = h_delta < x0;
        const x3 = sigmoid(x0 / h_temperature);
        const x4 = x3 * (1 - x3);
        const x5 = x4 * c0;
        const x6 = inputs[1].data[ij] < inputs[1].data[ip];
        const x7 = x4 * c2;
        const w = g;
        grad[ij] += x6 ? w * ((x1 ? ((x2 ? h_rho : 0) + (x2 ? 0 : x5)) : 0) + (x1 ? 0 : x5)) : 0;
        d1 += x6 ? w * ((x1 ? ((x2 ? c1 : 0) + (x2 ? 0 : x7)) : 0) + (x1 ? 0 : x7)) : 0;
      }
      grad[ip] += d1;
    }
  }
  // backward: sum[positives](where(nonzero(s - s_p) & ((s - s_p) < 0.0), 0.0, where(gain < gain_p, gain, gain_p)))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g1[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = inputs[0].data[ij] < inputs[0].data[ip];
        const x1 = s - s_p;
        const x2 = (Math.abs(x1) > 1.7763568394002505e-15) && (x1 < 0);
        const w = g;
        inputs[0].grad[ij] += x2 ? 0 : w * (x0 ? 1 : 0);
        d1 += x2 ? 0 : w * (x0 ? 0 : 1);
      }
      inputs[0].grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"Hardness-weighted NT-Xent": {
about: "NT-Xent in which each negative is weighted by its hardness.",
cite: "Lan et al. 2025",
kind: "HardnessWeightedNTXentLoss",
miner: null,
formula: "-\\log\\frac{e^{s_{ij}/\\tau}}{e^{s_{ij}/\\tau}+\\sum_{k\\in N_i}e^{\\alpha\\,\\mathrm{sg}(s_{ik})}\\,e^{s_{ik}/\\tau}}",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.07, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}, {"name": "hardness", "help": "strength of the weights", "value": 9.0, "least": 0.0, "most": 10.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature", "hardness"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  const h_hardness = h["hardness"];
  // count[negatives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives]((s / temperature) + (hardness * stop_gradient(s)))
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature + h_hardness * (s);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // sum[positives](softplus(logsumexp[negatives]((s / temperature) + (hardness * stop_gradient(s))) - (s / temperature)))
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = softplus(f1[i] - s / h_temperature);
      sum += v;
    }
    f2[i] = sum;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? f2[i] : 0;
  }
  // count[positives](1.0)
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f4[i] = count;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) ? f4[i] : 0;
  }
  const value = f3 / Math.max(f5, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    g2[i] += 0 < f0[i] ? w : 0;
  }
  // backward: sum[positives](softplus(logsumexp[negatives]((s / temperature) + (hardness * stop_gradient(s))) - (s / temperature)))
  const c0 = -(1 / h_temperature);
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = sigmoid(f1[i] - s / h_temperature);
      const w = g;
      d0 += w * x0;
      grad[ij] += w * (x0 * c0);
    }
    g1[i] += d0;
  }
  // backward: logsumexp[negatives]((s / temperature) + (hardness * stop_gradient(s)))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature + h_hardness * (s);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (1 / h_temperature);
    }
  }
  return value;
}] }] }),
},
"Histogram": {
about: "Histogram loss: the probability that a random negative pair is more similar than a random positive one.",
cite: "Ustinova & Lempitsky 2016",
kind: "HistogramLoss",
miner: null,
formula: "\\sum_r h^-_r\\sum_{q\\le r}h^+_q",
similarity: "cosine",
centers: 0,
parameters: [{"name": "bins", "help": "number of histogram intervals", "value": 100, "least": 20, "most": 200, "log": false, "whole": true, "choices": null}],
exact: true,
run: lossOf({ names: ["bins"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [averaged("mean", HistogramLoss_matrix)] }] }),
},
"Intra-pair variance": {
about: "Intra-pair variance: penalizes positive (negative) pairs far below (above) the batch mean.",
cite: "Yu & Tao 2019",
kind: "IntraPairVarianceLoss",
miner: null,
formula: "\\mathrm{mean}_{\\mathcal P}[(1-\\varepsilon_+)\\bar s_+ - s]_+^2 + \\mathrm{mean}_{\\mathcal N}[s-(1+\\varepsilon_-)\\bar s_-]_+^2",
similarity: "cosine",
centers: 0,
parameters: [{"name": "positive_epsilon", "help": "slack of positives", "value": 0.01, "least": 0.001, "most": 0.2, "log": true, "whole": false, "choices": null}, {"name": "negative_epsilon", "help": "slack of negatives", "value": 0.01, "least": 0.001, "most": 0.2, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["positive_epsilon", "negative_epsilon"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_positive_epsilon = h["positive_epsilon"];
  const h_negative_epsilon = h["negative_epsilon"];
  // sum[positives](s)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      sum += v;
    }
    f0[i] = sum;
  }
  let f1 = 0;
  for (let i = 0; i < m; i++) {
    f1 += f0[i];
  }
  // count[positives](1.0)
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f2[i] = count;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += f2[i];
  }
  // sum[positives](square(relu(((1.0 - positive_epsilon) * (total(sum[positives](s)) / at_least(total(count[positives](1.0)), 1.0))) - s)))
  const f4 = new Float64Array(m);
  const c0 = (1 - h_positive_epsilon) * (f1 / Math.max(f3, 1));
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = square(Math.max(c0 - s, 0));
      sum += v;
    }
    f4[i] = sum;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += f4[i];
  }
  // sum[negatives](s)
  const f6 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      sum += v;
    }
    f6[i] = sum;
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += f6[i];
  }
  // count[negatives](1.0)
  const f8 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f8[i] = count;
  }
  let f9 = 0;
  for (let i = 0; i < m; i++) {
    f9 += f8[i];
  }
  // sum[negatives](square(relu(s - ((1.0 + negative_epsilon) * (total(sum[negatives](s)) / at_least(total(count[negatives](1.0)), 1.0))))))
  const f10 = new Float64Array(m);
  const c1 = (1 + h_negative_epsilon) * (f7 / Math.max(f9, 1));
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = square(Math.max(s - c1, 0));
      sum += v;
    }
    f10[i] = sum;
  }
  let f11 = 0;
  for (let i = 0; i < m; i++) {
    f11 += f10[i];
  }
  const value = f5 / Math.max(f3, 1) + f11 / Math.max(f9, 1);
  const g0 = new Float64Array(m);
  let g1 = 0;
  const g4 = new Float64Array(m);
  let g5 = 0;
  const g6 = new Float64Array(m);
  let g7 = 0;
  const g10 = new Float64Array(m);
  let g11 = 0;
  g5 += 1 / Math.max(f3, 1);
  g11 += 1 / Math.max(f9, 1);
  for (let i = 0; i < m; i++) {
    const w = g11;
    g10[i] += w;
  }
  // backward: sum[negatives](square(relu(s - ((1.0 + negative_epsilon) * (total(sum[negatives](s)) / at_least(total(count[negatives](1.0)), 1.0))))))
  const c2 = 1 + h_negative_epsilon;
  const c3 = Math.max(f9, 1);
  const c4 = -(c2 * (1 / c3));
  for (let i = 0; i < m; i++) {
    const g = g10[i];
    if (g === 0) continue;
    let d1 = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = s - c1;
      const x1 = 2 * Math.max(x0, 0);
      const x2 = 0 < x0;
      const w = g;
      grad[ij] += x2 ? w * x1 : 0;
      d1 += x2 ? w * (c4 * x1) : 0;
    }
    g7 += d1;
  }
  for (let i = 0; i < m; i++) {
    const w = g7;
    g6[i] += w;
  }
  // backward: sum[negatives](s)
  for (let i = 0; i < m; i++) {
    const g = g6[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const w = g;
      grad[ij] += w;
    }
  }
  for (let i = 0; i < m; i++) {
    const w = g5;
    g4[i] += w;
  }
  // backward: sum[positives](square(relu(((1.0 - positive_epsilon) * (total(sum[positives](s)) / at_least(total(count[positives](1.0)), 1.0))) - s)))
  const c5 = 1 - h_positive_epsilon;
  const c6 = Math.max(f3, 1);
  const c7 = c5 * (1 / c6);
  for (let i = 0; i < m; i++) {
    const g = g4[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = c0 - s;
      const x1 = 2 * Math.max(x0, 0);
      const x2 = 0 < x0;
      const w = g;
      d0 += x2 ? w * (c7 * x1) : 0;
      grad[ij] += x2 ? w * (-x1) : 0;
    }
    g1 += d0;
  }
  for (let i = 0; i < m; i++) {
    const w = g1;
    g0[i] += w;
  }
  // backward: sum[positives](s)
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const w = g;
      grad[ij] += w;
    }
  }
  return value;
}] }] }),
},
"Lifted structure": {
about: "Lifted structure loss as first published: every positive pair against the negatives of both members.",
cite: "Song et al. 2016",
kind: "LiftedStructureLoss",
miner: null,
formula: "\\tfrac12\\Bigl[d_{ij}+\\log\\Bigl(\\sum_{k\\in N_i}e^{\\lambda-d_{ik}}+\\sum_{l\\in N_j}e^{\\lambda-d_{jl}}\\Bigr)\\Bigr]_+^2",
similarity: "euclidean",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 1.0, "least": 0.1, "most": 2.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "euclidean", normalize: true }, pool: null, mine: null, inputs: [], functions: [averaged("mean", LiftedStructureLoss_matrix)] }] }),
},
"Margin": {
about: "Margin loss with a learned boundary β between positive and negative distances.",
cite: "Wu et al. 2017",
kind: "MarginLoss",
miner: null,
formula: "\\frac{\\sum_{(a,p,n)}[\\lambda+d_{ap}-\\beta]_+ + [\\lambda+\\beta-d_{an}]_+}{\\text{number of non-zero terms}}+\\nu\\,\\bar\\beta",
similarity: "euclidean",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.2, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "beta", "help": "boundary between positive and negative distances", "value": 1.2, "least": 0.5, "most": 1.5, "log": false, "whole": false, "choices": null}, {"name": "nu", "help": "weight of the mean beta", "value": 0.0, "least": 0.0, "most": 0.1, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "beta", "nu"], alone: [MarginLoss_alone], matrices: [{ between: "samples against samples", similarity: { kind: "euclidean", normalize: true }, pool: null, mine: null, inputs: [MarginLoss_boundary], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_margin = h["margin"];
  // count[negatives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[positives](relu((margin - s) - beta))
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = Math.max((h_margin - s) - inputs[0].data[i], 0);
      sum += v;
    }
    f1[i] = sum;
  }
  // count[positives](1.0)
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f2[i] = count;
  }
  // sum[negatives](relu((margin + beta) + s))
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_margin + inputs[0].data[i];
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = Math.max(x0 + s, 0);
      sum += v;
    }
    f3[i] = sum;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += f0[i] * f1[i] + f2[i] * f3[i];
  }
  // count[positives](0.0 < relu((margin - s) - beta))
  const f5 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if (0 < Math.max((h_margin - s) - inputs[0].data[i], 0)) count++;
    }
    f5[i] = count;
  }
  // count[negatives](0.0 < relu((margin + beta) + s))
  const f6 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_margin + inputs[0].data[i];
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (0 < Math.max(x0 + s, 0)) count++;
    }
    f6[i] = count;
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += f0[i] * f5[i] + f2[i] * f6[i];
  }
  const value = f4 / Math.max(f7, 1);
  const g1 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f7, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    g1[i] += w * (f0[i]);
    g3[i] += w * (f2[i]);
  }
  // backward: sum[negatives](relu((margin + beta) + s))
  for (let i = 0; i < m; i++) {
    const x0 = h_margin + inputs[0].data[i];
    const g = g3[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g;
      d0 += 0 < (x0 + s) ? w : 0;
      grad[ij] += 0 < (x0 + s) ? w : 0;
    }
    inputs[0].grad[i] += d0;
  }
  // backward: sum[positives](relu((margin - s) - beta))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    let d1 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += 0 < ((h_margin - s) - inputs[0].data[i]) ? -w : 0;
      d1 += 0 < ((h_margin - s) - inputs[0].data[i]) ? -w : 0;
    }
    inputs[0].grad[i] += d1;
  }
  return value;
}] }] }),
},
"Multi-similarity": {
about: "Multi-similarity loss: each pair is weighted by its similarity and by those of the anchor's other pairs.",
cite: "Wang et al. 2019",
kind: "MultiSimilarityLoss",
miner: null,
formula: "\\frac1\\alpha\\log\\Bigl[1+\\sum_{k\\in P_i}e^{-\\alpha(s_{ik}-\\lambda)}\\Bigr] +\\frac1\\beta\\log\\Bigl[1+\\sum_{k\\in N_i}e^{\\beta(s_{ik}-\\lambda)}\\Bigr]",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["alpha", "beta", "base"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_alpha = h["alpha"];
  const h_base = h["base"];
  const h_beta = h["beta"];
  // logsumexp[positives]((-alpha) * (s - base))
  const f0 = new Float64Array(m);
  const f0_peak = new Float64Array(m);
  const f0_total = new Float64Array(m);
  const c0 = -h_alpha;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_base);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f0[i] = Math.log(Math.max(total, 1)) + peak;
    f0_peak[i] = peak;
    f0_total[i] = total;
  }
  // logsumexp[negatives](beta * (s - base))
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_beta * (s - h_base);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += softplus(f0[i]) / h_alpha + softplus(f1[i]) / h_beta;
  }
  // count[positives](1.0)
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f3[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += (-1) < f3[i];
  }
  const value = f2 / Math.max(f4, 1);
  const g0 = new Float64Array(m);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f4, 1);
  const c1 = 1 / h_alpha;
  const c2 = 1 / h_beta;
  for (let i = 0; i < m; i++) {
    const w = g2;
    g0[i] += w * (c1 * sigmoid(f0[i]));
    g1[i] += w * (c2 * sigmoid(f1[i]));
  }
  // backward: logsumexp[negatives](beta * (s - base))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_beta * (s - h_base);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_beta;
    }
  }
  // backward: logsumexp[positives]((-alpha) * (s - base))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    const peak = f0_peak[i];
    const total = f0_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_base);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * c0;
    }
  }
  return value;
}] }] }),
},
"Multi-similarity + its miner": {
about: "Multi-similarity loss: each pair is weighted by its similarity and by those of the anchor's other pairs.",
cite: "Wang et al. 2019",
kind: "MultiSimilarityLoss",
miner: "MultiSimilarityMiner",
formula: "\\frac1\\alpha\\log\\Bigl[1+\\sum_{k\\in P_i}e^{-\\alpha(s_{ik}-\\lambda)}\\Bigr] +\\frac1\\beta\\log\\Bigl[1+\\sum_{k\\in N_i}e^{\\beta(s_{ik}-\\lambda)}\\Bigr]",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "miner.epsilon", "help": "slack", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["alpha", "beta", "base", "miner.epsilon"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: (S, pairs, h) => {
  const { rows: m, columns: n, data } = S;
  const { positives, negatives } = pairs;
  const h_miner_epsilon = h["miner.epsilon"];
  // max[negatives](s)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = -Infinity, ties = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      if (v > best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f0[i] = best;
  }
  // min[positives](s)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = Infinity, ties = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      if (v < best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f1[i] = best;
  }
  const kept = new Uint8Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if ((s - h_miner_epsilon) < f0[i]) kept[ij] = 1;
    }
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (f1[i] < (s + h_miner_epsilon)) kept[ij] = 2;
    }
  }
  return relationOf(kept, m, n);
}, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_alpha = h["alpha"];
  const h_base = h["base"];
  const h_beta = h["beta"];
  // logsumexp[positives]((-alpha) * (s - base))
  const f0 = new Float64Array(m);
  const f0_peak = new Float64Array(m);
  const f0_total = new Float64Array(m);
  const c0 = -h_alpha;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_base);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f0[i] = Math.log(Math.max(total, 1)) + peak;
    f0_peak[i] = peak;
    f0_total[i] = total;
  }
  // logsumexp[negatives](beta * (s - base))
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_beta * (s - h_base);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += softplus(f0[i]) / h_alpha + softplus(f1[i]) / h_beta;
  }
  // count[positives](1.0)
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f3[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += (-1) < f3[i];
  }
  const value = f2 / Math.max(f4, 1);
  const g0 = new Float64Array(m);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f4, 1);
  const c1 = 1 / h_alpha;
  const c2 = 1 / h_beta;
  for (let i = 0; i < m; i++) {
    const w = g2;
    g0[i] += w * (c1 * sigmoid(f0[i]));
    g1[i] += w * (c2 * sigmoid(f1[i]));
  }
  // backward: logsumexp[negatives](beta * (s - base))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_beta * (s - h_base);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_beta;
    }
  }
  // backward: logsumexp[positives]((-alpha) * (s - base))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    const peak = f0_peak[i];
    const total = f0_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_base);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * c0;
    }
  }
  return value;
}] }] }),
},
"N-pairs": {
about: "N-pairs loss: all negatives and all positives of an anchor in one logarithm.",
cite: "Sohn 2016",
kind: "NPairsLoss",
miner: null,
formula: "\\log\\Bigl(1+\\sum_{j\\in P_i}\\sum_{k\\in N_i}e^{s_{ik}-s_{ij}}\\Bigr) + \\ell_2\\,\\lVert x_i\\rVert^2",
similarity: "dot",
centers: 0,
parameters: [{"name": "l2", "help": "weight of the mean squared norm", "value": 0.0, "least": 0.0, "most": 0.1, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "multiplies the similarities", "value": 1.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["l2", "scale"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "dot", normalize: false }, pool: null, mine: null, inputs: [NPairsLoss_squared_norm], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  const h_l2 = h["l2"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // logsumexp[negatives](scale * s)
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  // logsumexp[positives]((-scale) * s)
  const f3 = new Float64Array(m);
  const f3_peak = new Float64Array(m);
  const f3_total = new Float64Array(m);
  const c0 = -h_scale;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f3[i] = Math.log(Math.max(total, 1)) + peak;
    f3_peak[i] = peak;
    f3_total[i] = total;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? softplus(f2[i] + f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  let f6 = 0;
  for (let i = 0; i < m; i++) {
    f6 += h_l2 * inputs[0].data[i];
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += (-1) < f0[i];
  }
  const value = f4 / Math.max(f5, 1) + f6 / Math.max(f7, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  let g6 = 0;
  g4 += 1 / Math.max(f5, 1);
  g6 += 1 / Math.max(f7, 1);
  for (let i = 0; i < m; i++) {
    const w = g6;
    inputs[0].grad[i] += w * h_l2;
  }
  for (let i = 0; i < m; i++) {
    const w = g4;
    g2[i] += (0 < f0[i]) && (0 < f1[i]) ? w * (sigmoid(f2[i] + f3[i])) : 0;
    g3[i] += (0 < f0[i]) && (0 < f1[i]) ? w * (sigmoid(f2[i] + f3[i])) : 0;
  }
  // backward: logsumexp[positives]((-scale) * s)
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const peak = f3_peak[i];
    const total = f3_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * c0;
    }
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  return value;
}] }] }),
},
"NCA": {
about: "Neighborhood components analysis: the probability that a random neighbor is a positive.",
cite: "Goldberger et al. 2005",
kind: "NCALoss",
miner: null,
formula: "-\\log\\frac{\\sum_{j\\in P_i}e^{\\sigma s_{ij}}}{\\sum_{k\\ne i}e^{\\sigma s_{ik}}}",
similarity: "squared_euclidean",
centers: 0,
parameters: [{"name": "scale", "help": "scale", "value": 1.0, "least": 1.0, "most": 64.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["scale"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "squared_euclidean", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // logsumexp[negatives](scale * s)
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  // logsumexp[positives](scale * s)
  const f3 = new Float64Array(m);
  const f3_peak = new Float64Array(m);
  const f3_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f3[i] = Math.log(Math.max(total, 1)) + peak;
    f3_peak[i] = peak;
    f3_total[i] = total;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? softplus(f2[i] - f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    const x0 = sigmoid(f2[i] - f3[i]);
    const x1 = (0 < f0[i]) && (0 < f1[i]);
    g2[i] += x1 ? w * x0 : 0;
    g3[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const peak = f3_peak[i];
    const total = f3_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  return value;
}] }] }),
},
"NDCG": {
about: "NDCG: one minus the normalized discounted cumulative gain, with a soft rank in the discount.",
cite: "Qin et al. 2010",
kind: "NDCGLoss",
miner: null,
formula: "1-\\frac{1}{I_i}\\sum_{p\\in P_i}\\frac{r_{ip}}{\\log_2(1+\\rho_{ip})},\\qquad \\rho_{ip}=1+\\sum_{j\\ne p}\\sigma((s_{ij}-s_{ip})/\\tau)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature of the step", "value": 0.01, "least": 0.001, "most": 0.1, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [NDCGLoss_relevance, NDCGLoss_ideal_gain], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[positives](sigmoid((s - s_p) / temperature))
  const f1 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const v = sigmoid((s - s_p) / h_temperature);
        sum += v;
      }
      f1[ip] = sum;
    }
  }
  // sum[negatives](sigmoid((s - s_p) / temperature))
  const f2 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const v = sigmoid((s - s_p) / h_temperature);
        sum += v;
      }
      f2[ip] = sum;
    }
  }
  // sum[each positive]((0.6931471805599453 * relevance_p) / log(1.0 + ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))))
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = (0.6931471805599453 * inputs[0].data[ip]) / Math.log(Math.max(1 + ((0.5 + (x0 ? f1[ip] : 0)) + f2[ip]), 2.2250738585072014e-308));
      sum += v;
    }
    f3[i] = sum;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    f4 += x0 ? (1 - (x0 ? f3[i] : 0) / ((0 < inputs[1].data[i]) ? inputs[1].data[i] : 1)) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += 0 < f0[i];
  }
  const value = f4 / Math.max(f5, 1);
  const g1 = new Float64Array(m * n);
  const g2 = new Float64Array(m * n);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    const x0 = 0 < f0[i];
    const x1 = 0 < inputs[1].data[i];
    const x2 = x1 ? inputs[1].data[i] : 1;
    g3[i] += x0 ? w * (-(x0 ? (1 / x2) : 0)) : 0;
    inputs[1].grad[i] += x0 ? w * (-(x1 ? ((-(x0 ? f3[i] : 0)) / (x2 * x2)) : 0)) : 0;
  }
  // backward: sum[each positive]((0.6931471805599453 * relevance_p) / log(1.0 + ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))))
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    const g = g3[i];
    if (g === 0) continue;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x1 = 1 + ((0.5 + (x0 ? f1[ip] : 0)) + f2[ip]);
      const x2 = Math.log(Math.max(x1, 2.2250738585072014e-308));
      const x3 = 0 < x1;
      const x4 = (1 / (x3 ? x1 : 1)) * ((-(0.6931471805599453 * inputs[0].data[ip])) / (x2 * x2));
      const w = g;
      inputs[0].grad[ip] += w * ((1 / x2) * 0.6931471805599453);
      g1[ip] += x3 ? w * (x0 ? x4 : 0) : 0;
      g2[ip] += x3 ? w * x4 : 0;
    }
  }
  // backward: sum[negatives](sigmoid((s - s_p) / temperature))
  const c0 = 1 / h_temperature;
  const c1 = -c0;
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g2[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = sigmoid((s - s_p) / h_temperature);
        const x1 = x0 * (1 - x0);
        const w = g;
        grad[ij] += w * (x1 * c0);
        d1 += w * (x1 * c1);
      }
      grad[ip] += d1;
    }
  }
  // backward: sum[positives](sigmoid((s - s_p) / temperature))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g1[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = sigmoid((s - s_p) / h_temperature);
        const x1 = x0 * (1 - x0);
        const w = g;
        grad[ij] += w * (x1 * c0);
        d1 += w * (x1 * c1);
      }
      grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"Normalized softmax": {
about: "Softmax cross entropy on cosines over a temperature.",
cite: "Wang et al. 2017, Zhai & Wu 2019",
kind: "NormalizedSoftmaxLoss",
miner: null,
formula: "-\\log\\frac{e^{\\cos(x,w_y)/\\tau}}{\\sum_c e^{\\cos(x,w_c)/\\tau}}",
similarity: "cosine",
centers: 1,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.05, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](s / temperature)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives](s / temperature)
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](s / temperature)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (1 / h_temperature);
    }
  }
  // backward: logsumexp[negatives](s / temperature)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (1 / h_temperature);
    }
  }
  return value;
}] }] }),
},
"NT-Xent": {
about: "NT-Xent (InfoNCE): every positive pair against the negatives of its anchor.",
cite: "Sohn 2016, van den Oord et al. 2018, Chen et al. 2020",
kind: "NTXentLoss",
miner: null,
formula: "-\\log\\frac{e^{s_{ij}/\\tau}}{e^{s_{ij}/\\tau}+\\sum_{k\\in N_i}e^{s_{ik}/\\tau}}",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.07, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  // count[negatives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](s / temperature)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // sum[positives](softplus(logsumexp[negatives](s / temperature) - (s / temperature)))
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = softplus(f1[i] - s / h_temperature);
      sum += v;
    }
    f2[i] = sum;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? f2[i] : 0;
  }
  // count[positives](1.0)
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f4[i] = count;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) ? f4[i] : 0;
  }
  const value = f3 / Math.max(f5, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    g2[i] += 0 < f0[i] ? w : 0;
  }
  // backward: sum[positives](softplus(logsumexp[negatives](s / temperature) - (s / temperature)))
  const c0 = -(1 / h_temperature);
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = sigmoid(f1[i] - s / h_temperature);
      const w = g;
      d0 += w * x0;
      grad[ij] += w * (x0 * c0);
    }
    g1[i] += d0;
  }
  // backward: logsumexp[negatives](s / temperature)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (1 / h_temperature);
    }
  }
  return value;
}] }] }),
},
"P2SGrad": {
about: "P2SGrad: pulls the cosine to one for the proxy of a sample's class and to zero for the others.",
cite: "Zhang et al. 2019",
kind: "P2SGradLoss",
miner: null,
formula: "\\frac1C\\sum_c\\bigl(\\cos(x,w_c)-[c=y]\\bigr)^2",
similarity: "cosine",
centers: 1,
parameters: [],
exact: true,
run: lossOf({ names: [], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives, both } = pairs;
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[positives](square(s - 1.0))
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = square(s - 1);
      sum += v;
    }
    f1[i] = sum;
  }
  // sum[negatives](square(s))
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = square(s);
      sum += v;
    }
    f2[i] = sum;
  }
  // count[both](1.0)
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = both.first[i], last = both.first[i + 1]; j < last; j++) {
      count++;
    }
    f3[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    f4 += x0 ? (((x0 ? f1[i] : 0) + f2[i]) / f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += 0 < f0[i];
  }
  const value = f4 / Math.max(f5, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    const x0 = 0 < f0[i];
    const x1 = x0 ? (1 / f3[i]) : 0;
    g1[i] += x0 ? w * x1 : 0;
    g2[i] += w * x1;
  }
  // backward: sum[negatives](square(s))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += w * (2 * s);
    }
  }
  // backward: sum[positives](square(s - 1.0))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += w * (2 * (s - 1));
    }
  }
  return value;
}] }] }),
},
"PNP": {
about: "PNP: a function of the soft number of negatives above each positive.",
cite: "Li et al. 2021",
kind: "PNPLoss",
miner: null,
formula: "\\frac{1}{|P_i|}\\sum_{p\\in P_i}f(n_{ip}),\\qquad n_{ip}=\\sum_{j\\in N_i}\\sigma((s_{ij}-s_{ip})/\\tau)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature of the step", "value": 0.01, "least": 0.001, "most": 0.1, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[negatives](sigmoid((s - s_p) / temperature))
  const f1 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const v = sigmoid((s - s_p) / h_temperature);
        sum += v;
      }
      f1[ip] = sum;
    }
  }
  // mean[each positive](sum[negatives](sigmoid((s - s_p) / temperature)))
  const f2 = new Float64Array(m);
  const f2_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0, count = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f1[ip];
      sum += v; count++;
    }
    f2[i] = sum / Math.max(count, 1);
    f2_count[i] = count;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? f2[i] : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m * n);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    g2[i] += 0 < f0[i] ? w : 0;
  }
  // backward: mean[each positive](sum[negatives](sigmoid((s - s_p) / temperature)))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const count = f2_count[i];
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const w = g * (1 / count);
      g1[ip] += w;
    }
  }
  // backward: sum[negatives](sigmoid((s - s_p) / temperature))
  const c0 = 1 / h_temperature;
  const c1 = -c0;
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g1[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = sigmoid((s - s_p) / h_temperature);
        const x1 = x0 * (1 - x0);
        const w = g;
        grad[ij] += w * (x1 * c0);
        d1 += w * (x1 * c1);
      }
      grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"Proxy repulsion": {
about: "Proxy repulsion: samples are pulled to their proxies, and the proxies repel each other.",
cite: "Eq. 6.1 of the thesis",
kind: "ProxyRepulsionLoss",
miner: null,
formula: "\\frac{1}{|W^+|}\\sum_{w\\in W^+}\\log\\Bigl(1+\\sum_{x\\in X_w^+}e^{-\\alpha(w\\cdot x-\\lambda)}\\Bigr) +\\frac{1}{|W|}\\sum_{w\\in W}\\log\\Bigl(1+\\sum_{w'\\ne w}e^{\\alpha(w\\cdot w'+\\lambda)}\\Bigr)",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "alpha", "help": "scale", "value": 32.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "alpha"], alone: [], matrices: [{ between: "proxies against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives } = pairs;
  const h_alpha = h["alpha"];
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[positives]((-alpha) * (s - margin))
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  const c0 = -h_alpha;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_margin);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += (0 < f0[i]) ? softplus(f1[i]) : 0;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += 0 < f0[i];
  }
  const value = f2 / Math.max(f3, 1);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f3, 1);
  for (let i = 0; i < m; i++) {
    const w = g2;
    g1[i] += 0 < f0[i] ? w * (sigmoid(f1[i])) : 0;
  }
  // backward: logsumexp[positives]((-alpha) * (s - margin))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_margin);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * c0;
    }
  }
  return value;
}] }, { between: "proxies against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_alpha = h["alpha"];
  const h_margin = h["margin"];
  // logsumexp[negatives](alpha * (s + margin))
  const f0 = new Float64Array(m);
  const f0_peak = new Float64Array(m);
  const f0_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_alpha * (s + h_margin);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f0[i] = Math.log(Math.max(total, 1)) + peak;
    f0_peak[i] = peak;
    f0_total[i] = total;
  }
  let f1 = 0;
  for (let i = 0; i < m; i++) {
    f1 += softplus(f0[i]);
  }
  // count[positives](1.0)
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f2[i] = count;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (-1) < f2[i];
  }
  const value = f1 / Math.max(f3, 1);
  const g0 = new Float64Array(m);
  let g1 = 0;
  g1 += 1 / Math.max(f3, 1);
  for (let i = 0; i < m; i++) {
    const w = g1;
    g0[i] += w * (sigmoid(f0[i]));
  }
  // backward: logsumexp[negatives](alpha * (s + margin))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    const peak = f0_peak[i];
    const total = f0_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_alpha * (s + h_margin);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_alpha;
    }
  }
  return value;
}] }] }),
},
"Proxy-Anchor": {
about: "Proxy-Anchor: proxies are the anchors, and the samples of the batch are their positives and negatives.",
cite: "Kim et al. 2020",
kind: "ProxyAnchorLoss",
miner: null,
formula: "\\frac{1}{|P^+|}\\sum_{p\\in P^+}\\log\\Bigl(1+\\sum_{x\\in X_p^+}e^{-\\alpha(s(x,p)-\\delta)}\\Bigr) +\\frac{1}{|P|}\\sum_{p\\in P}\\log\\Bigl(1+\\sum_{x\\in X_p^-}e^{\\alpha(s(x,p)+\\delta)}\\Bigr)",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "alpha", "help": "scale", "value": 32.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "alpha"], alone: [], matrices: [{ between: "proxies against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_alpha = h["alpha"];
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[positives]((-alpha) * (s - margin))
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  const c0 = -h_alpha;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_margin);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += (0 < f0[i]) ? softplus(f1[i]) : 0;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += 0 < f0[i];
  }
  // logsumexp[negatives](alpha * (s + margin))
  const f4 = new Float64Array(m);
  const f4_peak = new Float64Array(m);
  const f4_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_alpha * (s + h_margin);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f4[i] = Math.log(Math.max(total, 1)) + peak;
    f4_peak[i] = peak;
    f4_total[i] = total;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += softplus(f4[i]);
  }
  let f6 = 0;
  for (let i = 0; i < m; i++) {
    f6 += (-1) < f0[i];
  }
  const value = f2 / Math.max(f3, 1) + f5 / Math.max(f6, 1);
  const g1 = new Float64Array(m);
  let g2 = 0;
  const g4 = new Float64Array(m);
  let g5 = 0;
  g2 += 1 / Math.max(f3, 1);
  g5 += 1 / Math.max(f6, 1);
  for (let i = 0; i < m; i++) {
    const w = g5;
    g4[i] += w * (sigmoid(f4[i]));
  }
  // backward: logsumexp[negatives](alpha * (s + margin))
  for (let i = 0; i < m; i++) {
    const g = g4[i];
    if (g === 0) continue;
    const peak = f4_peak[i];
    const total = f4_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_alpha * (s + h_margin);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_alpha;
    }
  }
  for (let i = 0; i < m; i++) {
    const w = g2;
    g1[i] += 0 < f0[i] ? w * (sigmoid(f1[i])) : 0;
  }
  // backward: logsumexp[positives]((-alpha) * (s - margin))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_margin);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * c0;
    }
  }
  return value;
}] }] }),
},
"ProxyGML": {
about: "ProxyGML: several proxies for each class; a sample is compared with its nearest proxies only.",
cite: "Zhu et al. 2020",
kind: "ProxyGMLLoss",
miner: null,
formula: "-\\log\\frac{e^{S_y}}{\\sum_{c\\in M}e^{S_c}}+\\lambda\\,\\mathrm{mean}_{p}\\Bigl(-\\log\\frac{e^{S^p_{y(p)}}}{\\sum_c e^{S^p_c}}\\Bigr)",
similarity: "cosine",
centers: 3,
parameters: [{"name": "centers", "help": "proxies of each class", "value": 3, "least": 1, "most": 5, "log": false, "whole": true, "choices": null}, {"name": "neighbors", "help": "proxies that a sample is compared with", "value": 8, "least": 5, "most": 200, "log": true, "whole": true, "choices": null}, {"name": "weight", "help": "weight of the term on proxies", "value": 0.3, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["centers", "neighbors", "weight"], alone: [ProxyGMLLoss_alone], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [averaged("mean", ProxyGMLLoss_matrix)] }] }),
},
"ProxyNCA": {
about: "ProxyNCA: the distance to the proxy of the class against the distances to the other proxies.",
cite: "Movshovitz-Attias et al. 2017",
kind: "ProxyNCALoss",
miner: null,
formula: "-\\log\\frac{e^{-\\sigma\\lVert x-p_y\\rVert^2}}{\\sum_{c\\ne y}e^{-\\sigma\\lVert x-p_c\\rVert^2}}",
similarity: "squared_euclidean",
centers: 1,
parameters: [{"name": "scale", "help": "scale", "value": 1.0, "least": 1.0, "most": 64.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["scale"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "squared_euclidean", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // logsumexp[negatives](scale * s)
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  // logsumexp[positives](scale * s)
  const f3 = new Float64Array(m);
  const f3_peak = new Float64Array(m);
  const f3_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f3[i] = Math.log(Math.max(total, 1)) + peak;
    f3_peak[i] = peak;
    f3_total[i] = total;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? (f2[i] - f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    const x0 = (0 < f0[i]) && (0 < f1[i]);
    g2[i] += x0 ? w : 0;
    g3[i] += x0 ? -w : 0;
  }
  // backward: logsumexp[positives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const peak = f3_peak[i];
    const total = f3_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  return value;
}] }] }),
},
"ProxyNCA++": {
about: "ProxyNCA++: a softmax over all proxies, with a temperature.",
cite: "Teh et al. 2020",
kind: "ProxyNCAPPLoss",
miner: null,
formula: "-\\log\\frac{e^{-\\lVert x-p_y\\rVert^2/T}}{\\sum_c e^{-\\lVert x-p_c\\rVert^2/T}}",
similarity: "squared_euclidean",
centers: 1,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.111, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "squared_euclidean", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](s / temperature)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives](s / temperature)
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](s / temperature)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (1 / h_temperature);
    }
  }
  // backward: logsumexp[negatives](s / temperature)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (1 / h_temperature);
    }
  }
  return value;
}] }] }),
},
"Quadruplet": {
about: "Quadruplet loss: a triplet loss, and positive pairs against negative pairs of other classes.",
cite: "Chen et al. 2017",
kind: "QuadrupletLoss",
miner: null,
formula: "\\mathrm{mean}\\,[s_{an}-s_{ap}+\\lambda_1]_+ + \\mathrm{mean}\\,[s_{nk}-s_{ap}+\\lambda_2]_+",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin1", "help": "margin of the triplets", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "margin2", "help": "margin of the quadruplets", "value": 0.05, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin1", "margin2"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_margin1 = h["margin1"];
  // sum[negatives](relu(s - (s_p - margin1)))
  const f0 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = s_p - h_margin1;
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const v = Math.max(s - x0, 0);
        sum += v;
      }
      f0[ip] = sum;
    }
  }
  // sum[each positive](sum[negatives](relu(s - (s_p - margin1))))
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f0[ip];
      sum += v;
    }
    f1[i] = sum;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += f1[i];
  }
  // count[negatives](0.0 < relu(s - (s_p - margin1)))
  const f3 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = s_p - h_margin1;
      let count = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        if (0 < Math.max(s - x0, 0)) count++;
      }
      f3[ip] = count;
    }
  }
  // sum[each positive](count[negatives](0.0 < relu(s - (s_p - margin1))))
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f3[ip];
      sum += v;
    }
    f4[i] = sum;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += f4[i];
  }
  const value = f2 / Math.max(f5, 1);
  const g0 = new Float64Array(m * n);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g2;
    g1[i] += w;
  }
  // backward: sum[each positive](sum[negatives](relu(s - (s_p - margin1))))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const w = g;
      g0[ip] += w;
    }
  }
  // backward: sum[negatives](relu(s - (s_p - margin1)))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = s_p - h_margin1;
      const g = g0[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x1 = 0 < (s - x0);
        const w = g;
        grad[ij] += x1 ? w : 0;
        d1 += x1 ? -w : 0;
      }
      grad[ip] += d1;
    }
  }
  return value;
}, averaged("nonzero", QuadrupletLoss_matrix)] }] }),
},
"Quadruplet-wise": {
about: "Quadruplet-wise constraints: every positive pair should be more similar than every negative pair of the batch.",
cite: "Law et al. 2013",
kind: "QuadrupletWiseLoss",
miner: null,
formula: "\\mathrm{mean}\\,[s_{kl}-s_{ij}+\\delta]_+",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [averaged("nonzero", QuadrupletWiseLoss_matrix)] }] }),
},
"Ranked list": {
about: "Ranked list loss: positives inside a ball, negatives outside of it by a margin, the hardest weighted most.",
cite: "Wang et al. 2019",
kind: "RankedListLoss",
miner: null,
formula: "L_P=\\frac{\\sum_{d_p>\\alpha-m}w_p\\,(d_p-(\\alpha-m))}{\\sum w_p+10^{-5}n},\\quad w_p=e^{T_p(d_p-(\\alpha-m))}",
similarity: "euclidean",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.4, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "Tn", "help": "steepness on negatives", "value": 10.0, "least": 0.0, "most": 20.0, "log": false, "whole": false, "choices": null}, {"name": "imbalance", "help": "weight of the negative term", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "alpha", "help": "least distance of negatives", "value": 1.2, "least": 0.8, "most": 1.6, "log": false, "whole": false, "choices": null}, {"name": "Tp", "help": "steepness on positives", "value": 0.0, "least": 0.0, "most": 10.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "Tn", "imbalance", "alpha", "Tp"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "euclidean", normalize: true }, pool: null, mine: null, inputs: [RankedListLoss_number_of_references, RankedListLoss_number_of_references], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_imbalance = h["imbalance"];
  const h_alpha = h["alpha"];
  const h_margin = h["margin"];
  const h_Tp = h["Tp"];
  const h_Tn = h["Tn"];
  // sum[positives](where(0.0 < ((-s) - (alpha - margin)), exp(Tp * ((-s) - (alpha - margin))) * ((-s) - (alpha - margin)), 0.0))
  const f0 = new Float64Array(m);
  const c0 = h_alpha - h_margin;
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = (-s) - c0;
      const v = (0 < x0) ? (Math.exp(h_Tp * x0) * x0) : 0;
      sum += v;
    }
    f0[i] = sum;
  }
  // sum[positives](where(0.0 < ((-s) - (alpha - margin)), exp(Tp * ((-s) - (alpha - margin))), 0.0))
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = (-s) - c0;
      const v = (0 < x0) ? Math.exp(h_Tp * x0) : 0;
      sum += v;
    }
    f1[i] = sum;
  }
  // sum[negatives](where(0.0 < (alpha + s), exp(Tn * (alpha + s)) * (alpha + s), 0.0))
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = h_alpha + s;
      const v = (0 < x0) ? (Math.exp(h_Tn * x0) * x0) : 0;
      sum += v;
    }
    f2[i] = sum;
  }
  // sum[negatives](where(0.0 < (alpha + s), exp(Tn * (alpha + s)), 0.0))
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = h_alpha + s;
      const v = (0 < x0) ? Math.exp(h_Tn * x0) : 0;
      sum += v;
    }
    f3[i] = sum;
  }
  let f4 = 0;
  const c1 = 1 - h_imbalance;
  for (let i = 0; i < m; i++) {
    f4 += c1 * (f0[i] / (f1[i] + 1e-05 * inputs[0].data[i])) + h_imbalance * (f2[i] / (f3[i] + 1e-05 * inputs[1].data[i]));
  }
  // count[positives](1.0)
  const f5 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f5[i] = count;
  }
  let f6 = 0;
  for (let i = 0; i < m; i++) {
    f6 += (-1) < f5[i];
  }
  const value = f4 / Math.max(f6, 1);
  const g0 = new Float64Array(m);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f6, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    const x0 = f1[i] + 1e-05 * inputs[0].data[i];
    const x1 = (-f0[i]) / (x0 * x0);
    const x2 = f3[i] + 1e-05 * inputs[1].data[i];
    const x3 = (-f2[i]) / (x2 * x2);
    g0[i] += w * (c1 * (1 / x0));
    g1[i] += w * (c1 * x1);
    inputs[0].grad[i] += w * (c1 * (x1 * 1e-05));
    g2[i] += w * (h_imbalance * (1 / x2));
    g3[i] += w * (h_imbalance * x3);
    inputs[1].grad[i] += w * (h_imbalance * (x3 * 1e-05));
  }
  // backward: sum[negatives](where(0.0 < (alpha + s), exp(Tn * (alpha + s)), 0.0))
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = h_alpha + s;
      const w = g;
      grad[ij] += 0 < x0 ? w * (Math.exp(h_Tn * x0) * h_Tn) : 0;
    }
  }
  // backward: sum[negatives](where(0.0 < (alpha + s), exp(Tn * (alpha + s)) * (alpha + s), 0.0))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = h_alpha + s;
      const x1 = Math.exp(h_Tn * x0);
      const w = g;
      grad[ij] += 0 < x0 ? w * (x0 * (x1 * h_Tn) + x1) : 0;
    }
  }
  // backward: sum[positives](where(0.0 < ((-s) - (alpha - margin)), exp(Tp * ((-s) - (alpha - margin))), 0.0))
  const c2 = -h_Tp;
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = (-s) - c0;
      const w = g;
      grad[ij] += 0 < x0 ? w * (Math.exp(h_Tp * x0) * c2) : 0;
    }
  }
  // backward: sum[positives](where(0.0 < ((-s) - (alpha - margin)), exp(Tp * ((-s) - (alpha - margin))) * ((-s) - (alpha - margin)), 0.0))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = (-s) - c0;
      const x1 = Math.exp(h_Tp * x0);
      const w = g;
      grad[ij] += 0 < x0 ? w * (x0 * (x1 * c2) + (-x1)) : 0;
    }
  }
  return value;
}] }] }),
},
"RAW + VTHM": {
about: "Relative and absolute weighting (RAW) of the pairs that valid-triplet hard mining keeps.",
cite: "Eq. 17 of the unified view",
kind: "RAWLoss",
miner: "ValidTripletMiner",
formula: "",
similarity: "cosine",
centers: 0,
parameters: [{"name": "alpha", "help": "steepness on positives", "value": 2.0, "least": 0.1, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "beta", "help": "steepness on negatives", "value": 50.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "base", "help": "threshold between positives and negatives", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "margin", "help": "margin of the mining", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["alpha", "beta", "base", "margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: (S, pairs, h) => {
  const { rows: m, columns: n, data } = S;
  const { positives, negatives } = pairs;
  const h_margin = h["margin"];
  // max[negatives](s)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = -Infinity, ties = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      if (v > best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f0[i] = best;
  }
  // min[positives](s)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = Infinity, ties = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      if (v < best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f1[i] = best;
  }
  const kept = new Uint8Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if ((s - h_margin) < f0[i]) kept[ij] = 1;
    }
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (f1[i] < (s + h_margin)) kept[ij] = 2;
    }
  }
  return relationOf(kept, m, n);
}, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_alpha = h["alpha"];
  const h_base = h["base"];
  const h_beta = h["beta"];
  // logsumexp[positives]((-alpha) * (s - base))
  const f0 = new Float64Array(m);
  const f0_peak = new Float64Array(m);
  const f0_total = new Float64Array(m);
  const c0 = -h_alpha;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_base);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f0[i] = Math.log(Math.max(total, 1)) + peak;
    f0_peak[i] = peak;
    f0_total[i] = total;
  }
  // logsumexp[negatives](beta * (s - base))
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_beta * (s - h_base);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += softplus(f0[i]) / h_alpha + softplus(f1[i]) / h_beta;
  }
  // count[positives](1.0)
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f3[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += (-1) < f3[i];
  }
  const value = f2 / Math.max(f4, 1);
  const g0 = new Float64Array(m);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f4, 1);
  const c1 = 1 / h_alpha;
  const c2 = 1 / h_beta;
  for (let i = 0; i < m; i++) {
    const w = g2;
    g0[i] += w * (c1 * sigmoid(f0[i]));
    g1[i] += w * (c2 * sigmoid(f1[i]));
  }
  // backward: logsumexp[negatives](beta * (s - base))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_beta * (s - h_base);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_beta;
    }
  }
  // backward: logsumexp[positives]((-alpha) * (s - base))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    const peak = f0_peak[i];
    const total = f0_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = c0 * (s - h_base);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * c0;
    }
  }
  return value;
}] }] }),
},
"Recall@k": {
about: "A differentiable recall at k, from the soft rank of each positive.",
cite: "Patel et al. 2022",
kind: "RecallAtKLoss",
miner: null,
formula: "1-\\frac{1}{|K|}\\sum_{k\\in K}\\frac{\\min(k,\\sum_{p\\in P_i}\\sigma((k-r_{ip})/\\tau_k))}{\\min(k,|P_i|)},\\qquad r_{ip}=1+\\sum_{j\\ne p}\\sigma((s_{ij}-s_{ip})/\\tau)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature of the rank", "value": 0.01, "least": 0.001, "most": 0.1, "log": true, "whole": false, "choices": null}, {"name": "k_temperature", "help": "temperature at k", "value": 1.0, "least": 0.1, "most": 10.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature", "k_temperature"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [RecallAtKLoss_count_anchors], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  const h_k_temperature = h["k_temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[positives](sigmoid((s - s_p) / temperature))
  const f1 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const v = sigmoid((s - s_p) / h_temperature);
        sum += v;
      }
      f1[ip] = sum;
    }
  }
  // sum[negatives](sigmoid((s - s_p) / temperature))
  const f2 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const v = sigmoid((s - s_p) / h_temperature);
        sum += v;
      }
      f2[ip] = sum;
    }
  }
  // sum[each positive](sigmoid((where(batch size < 1.0, batch size, 1.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = (inputs[0].data[i] < 1) ? inputs[0].data[i] : 1;
    const x1 = 0 < f0[i];
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = sigmoid((x0 - ((0.5 + (x1 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      sum += v;
    }
    f3[i] = sum;
  }
  // sum[each positive](sigmoid((where(batch size < 2.0, batch size, 2.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = (inputs[0].data[i] < 2) ? inputs[0].data[i] : 2;
    const x1 = 0 < f0[i];
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = sigmoid((x0 - ((0.5 + (x1 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      sum += v;
    }
    f4[i] = sum;
  }
  // sum[each positive](sigmoid((where(batch size < 4.0, batch size, 4.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  const f5 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = (inputs[0].data[i] < 4) ? inputs[0].data[i] : 4;
    const x1 = 0 < f0[i];
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = sigmoid((x0 - ((0.5 + (x1 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      sum += v;
    }
    f5[i] = sum;
  }
  // sum[each positive](sigmoid((where(batch size < 8.0, batch size, 8.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  const f6 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = (inputs[0].data[i] < 8) ? inputs[0].data[i] : 8;
    const x1 = 0 < f0[i];
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = sigmoid((x0 - ((0.5 + (x1 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      sum += v;
    }
    f6[i] = sum;
  }
  // sum[each positive](sigmoid((where(batch size < 16.0, batch size, 16.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  const f7 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = (inputs[0].data[i] < 16) ? inputs[0].data[i] : 16;
    const x1 = 0 < f0[i];
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = sigmoid((x0 - ((0.5 + (x1 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      sum += v;
    }
    f7[i] = sum;
  }
  let f8 = 0;
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    const x1 = x0 ? f3[i] : 0;
    const x2 = (inputs[0].data[i] < 1) ? inputs[0].data[i] : 1;
    const x3 = Math.max(x0 ? f0[i] : 0, 1);
    const x4 = x0 ? f4[i] : 0;
    const x5 = (inputs[0].data[i] < 2) ? inputs[0].data[i] : 2;
    const x6 = x0 ? f5[i] : 0;
    const x7 = (inputs[0].data[i] < 4) ? inputs[0].data[i] : 4;
    const x8 = x0 ? f6[i] : 0;
    const x9 = (inputs[0].data[i] < 8) ? inputs[0].data[i] : 8;
    const x10 = x0 ? f7[i] : 0;
    const x11 = (inputs[0].data[i] < 16) ? inputs[0].data[i] : 16;
    f8 += x0 ? (1 - ((((((x1 < x2) ? x1 : x2) / ((x3 < x2) ? x3 : x2) + ((x4 < x5) ? x4 : x5) / ((x3 < x5) ? x3 : x5)) + ((x6 < x7) ? x6 : x7) / ((x3 < x7) ? x3 : x7)) + ((x8 < x9) ? x8 : x9) / ((x3 < x9) ? x3 : x9)) + ((x10 < x11) ? x10 : x11) / ((x3 < x11) ? x3 : x11)) / 5) : 0;
  }
  let f9 = 0;
  for (let i = 0; i < m; i++) {
    f9 += 0 < f0[i];
  }
  const value = f8 / Math.max(f9, 1);
  const g1 = new Float64Array(m * n);
  const g2 = new Float64Array(m * n);
  const g3 = new Float64Array(m);
  const g4 = new Float64Array(m);
  const g5 = new Float64Array(m);
  const g6 = new Float64Array(m);
  const g7 = new Float64Array(m);
  let g8 = 0;
  g8 += 1 / Math.max(f9, 1);
  const c0 = 1 / 5;
  for (let i = 0; i < m; i++) {
    const w = g8;
    const x0 = 0 < f0[i];
    const x1 = x0 ? f3[i] : 0;
    const x2 = inputs[0].data[i] < 1;
    const x3 = x2 ? inputs[0].data[i] : 1;
    const x4 = x1 < x3;
    const x5 = Math.max(x0 ? f0[i] : 0, 1);
    const x6 = x5 < x3;
    const x7 = x6 ? x5 : x3;
    const x8 = 1 / x7;
    const x9 = x0 ? f4[i] : 0;
    const x10 = inputs[0].data[i] < 2;
    const x11 = x10 ? inputs[0].data[i] : 2;
    const x12 = x9 < x11;
    const x13 = x5 < x11;
    const x14 = x13 ? x5 : x11;
    const x15 = 1 / x14;
    const x16 = x0 ? f5[i] : 0;
    const x17 = inputs[0].data[i] < 4;
    const x18 = x17 ? inputs[0].data[i] : 4;
    const x19 = x16 < x18;
    const x20 = x5 < x18;
    const x21 = x20 ? x5 : x18;
    const x22 = 1 / x21;
    const x23 = x0 ? f6[i] : 0;
    const x24 = inputs[0].data[i] < 8;
    const x25 = x24 ? inputs[0].data[i] : 8;
    const x26 = x23 < x25;
    const x27 = x5 < x25;
    const x28 = x27 ? x5 : x25;
    const x29 = 1 / x28;
    const x30 = x0 ? f7[i] : 0;
    const x31 = inputs[0].data[i] < 16;
    const x32 = x31 ? inputs[0].data[i] : 16;
    const x33 = x30 < x32;
    const x34 = x5 < x32;
    const x35 = x34 ? x5 : x32;
    const x36 = 1 / x35;
    g3[i] += x0 ? w * (-(x4 ? (x0 ? (x8 * c0) : 0) : 0)) : 0;
    inputs[0].grad[i] += x0 ? w * (-(c0 * ((((((x4 ? 0 : (x2 ? x8 : 0)) + (x6 ? 0 : (x2 ? ((-(x4 ? x1 : x3)) / (x7 * x7)) : 0))) + ((x12 ? 0 : (x10 ? x15 : 0)) + (x13 ? 0 : (x10 ? ((-(x12 ? x9 : x11)) / (x14 * x14)) : 0)))) + ((x19 ? 0 : (x17 ? x22 : 0)) + (x20 ? 0 : (x17 ? ((-(x19 ? x16 : x18)) / (x21 * x21)) : 0)))) + ((x26 ? 0 : (x24 ? x29 : 0)) + (x27 ? 0 : (x24 ? ((-(x26 ? x23 : x25)) / (x28 * x28)) : 0)))) + ((x33 ? 0 : (x31 ? x36 : 0)) + (x34 ? 0 : (x31 ? ((-(x33 ? x30 : x32)) / (x35 * x35)) : 0)))))) : 0;
    g4[i] += x0 ? w * (-(x12 ? (x0 ? (x15 * c0) : 0) : 0)) : 0;
    g5[i] += x0 ? w * (-(x19 ? (x0 ? (x22 * c0) : 0) : 0)) : 0;
    g6[i] += x0 ? w * (-(x26 ? (x0 ? (x29 * c0) : 0) : 0)) : 0;
    g7[i] += x0 ? w * (-(x33 ? (x0 ? (x36 * c0) : 0) : 0)) : 0;
  }
  // backward: sum[each positive](sigmoid((where(batch size < 16.0, batch size, 16.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  const c1 = 1 / h_k_temperature;
  const c2 = -c1;
  for (let i = 0; i < m; i++) {
    const x0 = inputs[0].data[i] < 16;
    const x1 = x0 ? inputs[0].data[i] : 16;
    const x2 = 0 < f0[i];
    const x5 = c1 * (-(x2 ? 1 : 0));
    const g = g7[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x3 = sigmoid((x1 - ((0.5 + (x2 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      const x4 = x3 * (1 - x3);
      const w = g;
      d0 += x0 ? w * (c1 * x4) : 0;
      g1[ip] += w * (x4 * x5);
      g2[ip] += w * (x4 * c2);
    }
    inputs[0].grad[i] += d0;
  }
  // backward: sum[each positive](sigmoid((where(batch size < 8.0, batch size, 8.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  for (let i = 0; i < m; i++) {
    const x0 = inputs[0].data[i] < 8;
    const x1 = x0 ? inputs[0].data[i] : 8;
    const x2 = 0 < f0[i];
    const x5 = c1 * (-(x2 ? 1 : 0));
    const g = g6[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x3 = sigmoid((x1 - ((0.5 + (x2 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      const x4 = x3 * (1 - x3);
      const w = g;
      d0 += x0 ? w * (c1 * x4) : 0;
      g1[ip] += w * (x4 * x5);
      g2[ip] += w * (x4 * c2);
    }
    inputs[0].grad[i] += d0;
  }
  // backward: sum[each positive](sigmoid((where(batch size < 4.0, batch size, 4.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  for (let i = 0; i < m; i++) {
    const x0 = inputs[0].data[i] < 4;
    const x1 = x0 ? inputs[0].data[i] : 4;
    const x2 = 0 < f0[i];
    const x5 = c1 * (-(x2 ? 1 : 0));
    const g = g5[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x3 = sigmoid((x1 - ((0.5 + (x2 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      const x4 = x3 * (1 - x3);
      const w = g;
      d0 += x0 ? w * (c1 * x4) : 0;
      g1[ip] += w * (x4 * x5);
      g2[ip] += w * (x4 * c2);
    }
    inputs[0].grad[i] += d0;
  }
  // backward: sum[each positive](sigmoid((where(batch size < 2.0, batch size, 2.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  for (let i = 0; i < m; i++) {
    const x0 = inputs[0].data[i] < 2;
    const x1 = x0 ? inputs[0].data[i] : 2;
    const x2 = 0 < f0[i];
    const x5 = c1 * (-(x2 ? 1 : 0));
    const g = g4[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x3 = sigmoid((x1 - ((0.5 + (x2 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      const x4 = x3 * (1 - x3);
      const w = g;
      d0 += x0 ? w * (c1 * x4) : 0;
      g1[ip] += w * (x4 * x5);
      g2[ip] += w * (x4 * c2);
    }
    inputs[0].grad[i] += d0;
  }
  // backward: sum[each positive](sigmoid((where(batch size < 1.0, batch size, 1.0) - ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature)))) / k_temperature))
  for (let i = 0; i < m; i++) {
    const x0 = inputs[0].data[i] < 1;
    const x1 = x0 ? inputs[0].data[i] : 1;
    const x2 = 0 < f0[i];
    const x5 = c1 * (-(x2 ? 1 : 0));
    const g = g3[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x3 = sigmoid((x1 - ((0.5 + (x2 ? f1[ip] : 0)) + f2[ip])) / h_k_temperature);
      const x4 = x3 * (1 - x3);
      const w = g;
      d0 += x0 ? w * (c1 * x4) : 0;
      g1[ip] += w * (x4 * x5);
      g2[ip] += w * (x4 * c2);
    }
    inputs[0].grad[i] += d0;
  }
  // backward: sum[negatives](sigmoid((s - s_p) / temperature))
  const c3 = 1 / h_temperature;
  const c4 = -c3;
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g2[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = sigmoid((s - s_p) / h_temperature);
        const x1 = x0 * (1 - x0);
        const w = g;
        grad[ij] += w * (x1 * c3);
        d1 += w * (x1 * c4);
      }
      grad[ip] += d1;
    }
  }
  // backward: sum[positives](sigmoid((s - s_p) / temperature))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g1[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = sigmoid((s - s_p) / h_temperature);
        const x1 = x0 * (1 - x0);
        const w = g;
        grad[ij] += w * (x1 * c3);
        d1 += w * (x1 * c4);
      }
      grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"ROADMAP": {
about: "ROADMAP: SupAP, and a contrastive term that calibrates similarities across queries.",
cite: "Ramzi et al. 2021",
kind: "ROADMAPLoss",
miner: null,
formula: "L_\\mathrm{SupAP}+\\lambda\\Big(\\operatorname{mean}_{s_p<m_+}(m_+-s_p)+\\operatorname{mean}_{s_n>m_-}(s_n-m_-)\\Big)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature of the step", "value": 0.01, "least": 0.001, "most": 0.1, "log": true, "whole": false, "choices": null}, {"name": "rho", "help": "slope for large errors", "value": 100.0, "least": 1.0, "most": 1000.0, "log": true, "whole": false, "choices": null}, {"name": "delta", "help": "where the line begins", "value": 0.05, "least": 0.01, "most": 0.2, "log": false, "whole": false, "choices": null}, {"name": "start", "help": "cost of an error, minus one half", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "positive_margin", "help": "positives below it are pulled", "value": 0.9, "least": 0.5, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "negative_margin", "help": "negatives above it are pushed", "value": 0.6, "least": 0.0, "most": 0.9, "log": false, "whole": false, "choices": null}, {"name": "calibration_weight", "help": "weight of the contrastive term", "value": 1.0, "least": 0.1, "most": 10.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature", "rho", "delta", "start", "positive_margin", "negative_margin", "calibration_weight"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_delta = h["delta"];
  const h_rho = h["rho"];
  const h_start = h["start"];
  const h_temperature = h["temperature"];
  const h_positive_margin = h["positive_margin"];
  const h_calibration_weight = h["calibration_weight"];
  const h_negative_margin = h["negative_margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))
  const f1 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = sigmoid(x0 / h_temperature);
        const v = ((Math.abs(x0) > 1.7763568394002505e-15) && (0 < x0)) ? ((h_delta < x0) ? (h_rho * (x0 - h_delta) + 1.44) : (h_start + x1)) : x1;
        sum += v;
      }
      f1[ip] = sum;
    }
  }
  // count[positives](~(nonzero(s - s_p) & ((s - s_p) < 0.0)))
  const f2 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let count = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        if (!((Math.abs(x0) > 1.7763568394002505e-15) && (x0 < 0))) count++;
      }
      f2[ip] = count;
    }
  }
  // mean[each positive](sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature))) / (at_least(where(0.0 < count[positives](1.0), count[positives](~(nonzero(s - s_p) & ((s - s_p) < 0.0))), 0.0), 1.0) + sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))))
  const f3 = new Float64Array(m);
  const f3_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    let sum = 0, count = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f1[ip] / (Math.max(x0 ? f2[ip] : 0, 1) + f1[ip]);
      sum += v; count++;
    }
    f3[i] = sum / Math.max(count, 1);
    f3_count[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += (0 < f0[i]) ? f3[i] : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += 0 < f0[i];
  }
  // sum[positives](where(nonzero(relu(positive_margin - s)), calibration_weight * relu(positive_margin - s), 0.0))
  const f6 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = Math.max(h_positive_margin - s, 0);
      const v = (Math.abs(x0) > 1.7763568394002505e-15) ? (h_calibration_weight * x0) : 0;
      sum += v;
    }
    f6[i] = sum;
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += f6[i];
  }
  // count[positives](nonzero(relu(positive_margin - s)))
  const f8 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if (Math.abs(Math.max(h_positive_margin - s, 0)) > 1.7763568394002505e-15) count++;
    }
    f8[i] = count;
  }
  let f9 = 0;
  for (let i = 0; i < m; i++) {
    f9 += f8[i];
  }
  // sum[negatives](where(nonzero(relu(s - negative_margin)), calibration_weight * relu(s - negative_margin), 0.0))
  const f10 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = Math.max(s - h_negative_margin, 0);
      const v = (Math.abs(x0) > 1.7763568394002505e-15) ? (h_calibration_weight * x0) : 0;
      sum += v;
    }
    f10[i] = sum;
  }
  let f11 = 0;
  for (let i = 0; i < m; i++) {
    f11 += f10[i];
  }
  // count[negatives](nonzero(relu(s - negative_margin)))
  const f12 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (Math.abs(Math.max(s - h_negative_margin, 0)) > 1.7763568394002505e-15) count++;
    }
    f12[i] = count;
  }
  let f13 = 0;
  for (let i = 0; i < m; i++) {
    f13 += f12[i];
  }
  const value = (f4 / Math.max(f5, 1) + f7 / Math.max(f9, 1)) + f11 / Math.max(f13, 1);
  const g1 = new Float64Array(m * n);
  const g3 = new Float64Array(m);
  let g4 = 0;
  const g6 = new Float64Array(m);
  let g7 = 0;
  const g10 = new Float64Array(m);
  let g11 = 0;
  g4 += 1 / Math.max(f5, 1);
  g7 += 1 / Math.max(f9, 1);
  g11 += 1 / Math.max(f13, 1);
  for (let i = 0; i < m; i++) {
    const w = g11;
    g10[i] += w;
  }
  // backward: sum[negatives](where(nonzero(relu(s - negative_margin)), calibration_weight * relu(s - negative_margin), 0.0))
  for (let i = 0; i < m; i++) {
    const g = g10[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = s - h_negative_margin;
      const w = g;
      grad[ij] += Math.abs(Math.max(x0, 0)) > 1.7763568394002505e-15 ? w * ((0 < x0) ? h_calibration_weight : 0) : 0;
    }
  }
  for (let i = 0; i < m; i++) {
    const w = g7;
    g6[i] += w;
  }
  // backward: sum[positives](where(nonzero(relu(positive_margin - s)), calibration_weight * relu(positive_margin - s), 0.0))
  const c0 = -h_calibration_weight;
  for (let i = 0; i < m; i++) {
    const g = g6[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = h_positive_margin - s;
      const w = g;
      grad[ij] += Math.abs(Math.max(x0, 0)) > 1.7763568394002505e-15 ? w * ((0 < x0) ? c0 : 0) : 0;
    }
  }
  for (let i = 0; i < m; i++) {
    const w = g4;
    g3[i] += 0 < f0[i] ? w : 0;
  }
  // backward: mean[each positive](sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature))) / (at_least(where(0.0 < count[positives](1.0), count[positives](~(nonzero(s - s_p) & ((s - s_p) < 0.0))), 0.0), 1.0) + sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))))
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    const g = g3[i];
    if (g === 0) continue;
    const count = f3_count[i];
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x1 = Math.max(x0 ? f2[ip] : 0, 1) + f1[ip];
      const w = g * (1 / count);
      g1[ip] += w * (1 / x1 + (-f1[ip]) / (x1 * x1));
    }
  }
  // backward: sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))
  const c1 = 1 / h_temperature;
  const c2 = -h_rho;
  const c3 = -c1;
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g1[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = (Math.abs(x0) > 1.7763568394002505e-15) && (0 < x0);
        const x2 = h_delta < x0;
        const x3 = sigmoid(x0 / h_temperature);
        const x4 = x3 * (1 - x3);
        const x5 = x4 * c1;
        const x6 = x4 * c3;
        const w = g;
        grad[ij] += w * ((x1 ? ((x2 ? h_rho : 0) + (x2 ? 0 : x5)) : 0) + (x1 ? 0 : x5));
        d1 += w * ((x1 ? ((x2 ? c2 : 0) + (x2 ? 0 : x6)) : 0) + (x1 ? 0 : x6));
      }
      grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"Sigmoid": {
about: "Sigmoid loss (SigLIP): each pair is a binary classification, with a learned scale and bias.",
cite: "Zhai et al. 2023",
kind: "SigmoidLoss",
miner: null,
formula: "\\frac1n\\sum_i\\sum_j\\log\\bigl(1+e^{-z_{ij}(t\\,s_{ij}+b)}\\bigr),\\qquad z_{ij}=\\pm1",
similarity: "cosine",
centers: 0,
parameters: [{"name": "scale", "help": "scale", "value": 10.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "bias", "help": "bias", "value": -10.0, "least": -20.0, "most": 0.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["scale", "bias"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  const h_bias = h["bias"];
  // sum[positives](softplus(-((scale * s) + bias)))
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = softplus(-(h_scale * s + h_bias));
      sum += v;
    }
    f0[i] = sum;
  }
  // sum[negatives](softplus((scale * s) + bias))
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = softplus(h_scale * s + h_bias);
      sum += v;
    }
    f1[i] = sum;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += f0[i] + f1[i];
  }
  // count[positives](1.0)
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f3[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += (-1) < f3[i];
  }
  const value = f2 / Math.max(f4, 1);
  const g0 = new Float64Array(m);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g2;
    g0[i] += w;
    g1[i] += w;
  }
  // backward: sum[negatives](softplus((scale * s) + bias))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += w * (sigmoid(h_scale * s + h_bias) * h_scale);
    }
  }
  // backward: sum[positives](softplus(-((scale * s) + bias)))
  const c0 = -h_scale;
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += w * (sigmoid(-(h_scale * s + h_bias)) * c0);
    }
  }
  return value;
}] }] }),
},
"Smooth-AP": {
about: "Smooth-AP: one minus the average precision of each anchor's ranking, with sigmoids in place of steps.",
cite: "Brown et al. 2020",
kind: "SmoothAPLoss",
miner: null,
formula: "1-\\frac{1}{|P_i|}\\sum_{p\\in P_i}\\frac{1+\\sum_{j\\in P_i,\\,j\\ne p}\\sigma(d_{pj}/\\tau)}{1+\\sum_{j\\ne p}\\sigma(d_{pj}/\\tau)}, \\qquad d_{pj}=s_{ij}-s_{ip}",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature of the step", "value": 0.01, "least": 0.001, "most": 0.1, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[negatives](sigmoid((s - s_p) / temperature))
  const f1 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const v = sigmoid((s - s_p) / h_temperature);
        sum += v;
      }
      f1[ip] = sum;
    }
  }
  // sum[positives](sigmoid((s - s_p) / temperature))
  const f2 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const v = sigmoid((s - s_p) / h_temperature);
        sum += v;
      }
      f2[ip] = sum;
    }
  }
  // mean[each positive](sum[negatives](sigmoid((s - s_p) / temperature)) / ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature))))
  const f3 = new Float64Array(m);
  const f3_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    let sum = 0, count = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f1[ip] / ((0.5 + (x0 ? f2[ip] : 0)) + f1[ip]);
      sum += v; count++;
    }
    f3[i] = sum / Math.max(count, 1);
    f3_count[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += (0 < f0[i]) ? f3[i] : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += 0 < f0[i];
  }
  const value = f4 / Math.max(f5, 1);
  const g1 = new Float64Array(m * n);
  const g2 = new Float64Array(m * n);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    g3[i] += 0 < f0[i] ? w : 0;
  }
  // backward: mean[each positive](sum[negatives](sigmoid((s - s_p) / temperature)) / ((0.5 + where(0.0 < count[positives](1.0), sum[positives](sigmoid((s - s_p) / temperature)), 0.0)) + sum[negatives](sigmoid((s - s_p) / temperature))))
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    const g = g3[i];
    if (g === 0) continue;
    const count = f3_count[i];
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x1 = (0.5 + (x0 ? f2[ip] : 0)) + f1[ip];
      const x2 = (-f1[ip]) / (x1 * x1);
      const w = g * (1 / count);
      g1[ip] += w * (1 / x1 + x2);
      g2[ip] += x0 ? w * x2 : 0;
    }
  }
  // backward: sum[positives](sigmoid((s - s_p) / temperature))
  const c0 = 1 / h_temperature;
  const c1 = -c0;
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g2[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = sigmoid((s - s_p) / h_temperature);
        const x1 = x0 * (1 - x0);
        const w = g;
        grad[ij] += w * (x1 * c0);
        d1 += w * (x1 * c1);
      }
      grad[ip] += d1;
    }
  }
  // backward: sum[negatives](sigmoid((s - s_p) / temperature))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g1[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = sigmoid((s - s_p) / h_temperature);
        const x1 = x0 * (1 - x0);
        const w = g;
        grad[ij] += w * (x1 * c0);
        d1 += w * (x1 * c1);
      }
      grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"SNR contrastive": {
about: "Contrastive loss on the signal-to-noise distance $d = \\mathrm{var}(b - a)/\\mathrm{var}(a)$, $a$ the anchor.",
cite: "Yuan et al. 2019",
kind: "SNRContrastiveLoss",
miner: null,
formula: "\\mathrm{mean}_{\\mathcal P}[d - m_+]_+ + \\mathrm{mean}_{\\mathcal N}[m_- - d]_+ + \\lambda\\,\\mathrm{mean}_i\\Bigl|\\sum_k e_{ik}\\Bigr|",
similarity: "snr",
centers: 0,
parameters: [{"name": "positive_margin", "help": "positives below this distance cost nothing", "value": 0.0, "least": 0.0, "most": 0.5, "log": false, "whole": false, "choices": null}, {"name": "negative_margin", "help": "negatives above this distance cost nothing", "value": 1.0, "least": 0.1, "most": 2.0, "log": false, "whole": false, "choices": null}, {"name": "regularizer", "help": "weight of the zero-mean term", "value": 0.0, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["positive_margin", "negative_margin", "regularizer"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "snr", normalize: true }, pool: null, mine: null, inputs: [SNRContrastiveLoss_absolute_sum], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_positive_margin = h["positive_margin"];
  const h_negative_margin = h["negative_margin"];
  const h_regularizer = h["regularizer"];
  // sum[positives](relu((-s) - positive_margin))
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = Math.max((-s) - h_positive_margin, 0);
      sum += v;
    }
    f0[i] = sum;
  }
  let f1 = 0;
  for (let i = 0; i < m; i++) {
    f1 += f0[i];
  }
  // count[positives](nonzero(relu((-s) - positive_margin)))
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if (Math.abs(Math.max((-s) - h_positive_margin, 0)) > 1.7763568394002505e-15) count++;
    }
    f2[i] = count;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += f2[i];
  }
  // sum[negatives](relu(negative_margin + s))
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = Math.max(h_negative_margin + s, 0);
      sum += v;
    }
    f4[i] = sum;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += f4[i];
  }
  // count[negatives](nonzero(relu(negative_margin + s)))
  const f6 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (Math.abs(Math.max(h_negative_margin + s, 0)) > 1.7763568394002505e-15) count++;
    }
    f6[i] = count;
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += f6[i];
  }
  let f8 = 0;
  for (let i = 0; i < m; i++) {
    f8 += h_regularizer * inputs[0].data[i];
  }
  let f9 = 0;
  for (let i = 0; i < m; i++) {
    f9 += Math.abs((h_regularizer * inputs[0].data[i])) > 1.7763568394002505e-15;
  }
  const value = (f1 / Math.max(f3, 1) + f5 / Math.max(f7, 1)) + f8 / Math.max(f9, 1);
  const g0 = new Float64Array(m);
  let g1 = 0;
  const g4 = new Float64Array(m);
  let g5 = 0;
  let g8 = 0;
  g1 += 1 / Math.max(f3, 1);
  g5 += 1 / Math.max(f7, 1);
  g8 += 1 / Math.max(f9, 1);
  for (let i = 0; i < m; i++) {
    const w = g8;
    inputs[0].grad[i] += w * h_regularizer;
  }
  for (let i = 0; i < m; i++) {
    const w = g5;
    g4[i] += w;
  }
  // backward: sum[negatives](relu(negative_margin + s))
  for (let i = 0; i < m; i++) {
    const g = g4[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += 0 < (h_negative_margin + s) ? w : 0;
    }
  }
  for (let i = 0; i < m; i++) {
    const w = g1;
    g0[i] += w;
  }
  // backward: sum[positives](relu((-s) - positive_margin))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += 0 < ((-s) - h_positive_margin) ? -w : 0;
    }
  }
  return value;
}] }] }),
},
"Softmax": {
about: "Softmax cross entropy on inner products with one weight vector for each class.",
cite: "Eq. 2.25 and 2.26 of the thesis",
kind: "SoftmaxLoss",
miner: null,
formula: "-\\log\\frac{e^{w_y\\cdot x+b_y}}{\\sum_c e^{w_c\\cdot x+b_c}}",
similarity: "dot",
centers: 1,
parameters: [],
exact: true,
run: lossOf({ names: [], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "dot", normalize: false }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives](s)
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](s)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w;
    }
  }
  // backward: logsumexp[negatives](s)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w;
    }
  }
  return value;
}] }] }),
},
"SoftTriple": {
about: "SoftTriple: several centers for each class, weighted by a softmax, and a regularizer that merges redundant ones.",
cite: "Qian et al. 2019",
kind: "SoftTripleLoss",
miner: null,
formula: "S_c=\\sum_k\\frac{e^{x\\cdot w_{ck}/\\gamma}}{\\sum_l e^{x\\cdot w_{cl}/\\gamma}}\\,x\\cdot w_{ck},\\qquad -\\log\\frac{e^{\\lambda(S_y-\\delta)}}{e^{\\lambda(S_y-\\delta)}+\\sum_{c\\ne y}e^{\\lambda S_c}} +\\frac{\\tau\\sum_c\\sum_{k<l}\\sqrt{2+10^{-5}-2\\,w_{ck}\\cdot w_{cl}}}{C\\,K(K-1)}",
similarity: "cosine",
centers: 10,
parameters: [{"name": "centers", "help": "centers of each class", "value": 10, "least": 1, "most": 10, "log": false, "whole": true, "choices": null}, {"name": "la", "help": "scale", "value": 20.0, "least": 1.0, "most": 100.0, "log": true, "whole": false, "choices": null}, {"name": "gamma", "help": "temperature over centers", "value": 0.1, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}, {"name": "margin", "help": "margin", "value": 0.01, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "tau", "help": "weight of merging", "value": 0.2, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["centers", "la", "gamma", "margin", "tau"], alone: [SoftTripleLoss_alone], matrices: [{ between: "samples against classes, whose proxies are pooled", similarity: { kind: "cosine", normalize: true }, pool: SoftTripleLoss_pool, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_la = h["la"];
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](la * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_la * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives](la * (s - margin))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_la * (s - h_margin);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](la * (s - margin))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_la * (s - h_margin);
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_la;
    }
  }
  // backward: logsumexp[negatives](la * s)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_la * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_la;
    }
  }
  return value;
}] }] }),
},
"SphereFace": {
about: "SphereFace: a multiplicative angular margin.",
cite: "Liu et al. 2017",
kind: "SphereFaceLoss",
miner: null,
formula: "-\\log\\frac{e^{\\sigma\\lVert x\\rVert\\psi(\\theta_y)}}{e^{\\sigma\\lVert x\\rVert\\psi(\\theta_y)}+\\sum_{c\\ne y}e^{\\sigma\\lVert x\\rVert\\cos\\theta_c}}, \\qquad\\psi(\\theta)=(-1)^k\\cos(m\\theta)-2k,\\quad\\theta\\in\\bigl[\\tfrac{k\\pi}{m},\\tfrac{(k+1)\\pi}{m}\\bigr]",
similarity: "cosine",
centers: 1,
parameters: [{"name": "margin", "help": "the multiple of the angle", "value": 4, "least": 2, "most": 5, "log": false, "whole": true, "choices": [2, 3, 4, 5]}, {"name": "scale", "help": "scale", "value": 1.0, "least": 1.0, "most": 64.0, "log": true, "whole": false, "choices": null}],
exact: false,
run: choose([0], [[2, 3, 4, 5]], [
lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [SphereFaceLoss_embedding_norm], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives]((scale * ‖x‖) * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives]((scale * ‖x‖) * where(s < 6.123233995736766e-17, (-(((2.0 * s) * s) - 1.0)) - 2.0, ((2.0 * s) * s) - 1.0))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = (2 * s) * s - 1;
      const v = x0 * ((s < 6.123233995736766e-17) ? ((-x1) - 2) : x1);
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives]((scale * ‖x‖) * where(s < 6.123233995736766e-17, (-(((2.0 * s) * s) - 1.0)) - 2.0, ((2.0 * s) * s) - 1.0))
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = s < 6.123233995736766e-17;
      const x2 = 2 * s;
      const x3 = x2 * s - 1;
      const x4 = x1 ? ((-x3) - 2) : x3;
      const x5 = s * 2 + x2;
      const v = x0 * x4;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (x4 * h_scale);
      grad[ij] += w * (x0 * ((x1 ? (-x5) : 0) + (x1 ? 0 : x5)));
    }
    inputs[0].grad[i] += d0;
  }
  // backward: logsumexp[negatives]((scale * ‖x‖) * s)
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    let d0 = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (s * h_scale);
      grad[ij] += w * x0;
    }
    inputs[0].grad[i] += d0;
  }
  return value;
}] }] }),
lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [SphereFaceLoss_embedding_norm], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives]((scale * ‖x‖) * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives]((scale * ‖x‖) * where(s < -0.4999999999999998, (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s) - 4.0, where(s < 0.5000000000000001, (-(((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - 2.0, ((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = 2 * s;
      const x2 = x1 * (x1 * s - 1) - s;
      const v = x0 * ((s < (-0.4999999999999998)) ? (x2 - 4) : ((s < 0.5000000000000001) ? ((-x2) - 2) : x2));
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives]((scale * ‖x‖) * where(s < -0.4999999999999998, (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s) - 4.0, where(s < 0.5000000000000001, (-(((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - 2.0, ((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)))
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = s < (-0.4999999999999998);
      const x2 = 2 * s;
      const x3 = x2 * s - 1;
      const x4 = x2 * x3 - s;
      const x5 = s < 0.5000000000000001;
      const x6 = x1 ? (x4 - 4) : (x5 ? ((-x4) - 2) : x4);
      const x7 = (x3 * 2 + x2 * (s * 2 + x2)) + (-1);
      const v = x0 * x6;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (x6 * h_scale);
      grad[ij] += w * (x0 * ((x1 ? x7 : 0) + (x1 ? 0 : ((x5 ? (-x7) : 0) + (x5 ? 0 : x7)))));
    }
    inputs[0].grad[i] += d0;
  }
  // backward: logsumexp[negatives]((scale * ‖x‖) * s)
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    let d0 = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (s * h_scale);
      grad[ij] += w * x0;
    }
    inputs[0].grad[i] += d0;
  }
  return value;
}] }] }),
lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [SphereFaceLoss_embedding_norm], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives]((scale * ‖x‖) * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives]((scale * ‖x‖) * where(s < -0.7071067811865475, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - 6.0, where(s < 6.123233995736766e-17, (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0)) - 4.0, where(s < 0.7071067811865476, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - 2.0, ((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0)))))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = 2 * s;
      const x2 = x1 * s - 1;
      const x3 = x1 * (x1 * x2 - s) - x2;
      const x4 = -x3;
      const v = x0 * ((s < (-0.7071067811865475)) ? (x4 - 6) : ((s < 6.123233995736766e-17) ? (x3 - 4) : ((s < 0.7071067811865476) ? (x4 - 2) : x3)));
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives]((scale * ‖x‖) * where(s < -0.7071067811865475, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - 6.0, where(s < 6.123233995736766e-17, (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0)) - 4.0, where(s < 0.7071067811865476, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - 2.0, ((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0)))))
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = s < (-0.7071067811865475);
      const x2 = 2 * s;
      const x3 = x2 * s - 1;
      const x4 = x2 * x3 - s;
      const x5 = x2 * x4 - x3;
      const x6 = -x5;
      const x7 = s < 6.123233995736766e-17;
      const x8 = s < 0.7071067811865476;
      const x9 = x1 ? (x6 - 6) : (x7 ? (x5 - 4) : (x8 ? (x6 - 2) : x5));
      const x10 = s * 2 + x2;
      const x11 = (x4 * 2 + x2 * ((x3 * 2 + x2 * x10) + (-1))) + (-x10);
      const x12 = -x11;
      const v = x0 * x9;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (x9 * h_scale);
      grad[ij] += w * (x0 * ((x1 ? x12 : 0) + (x1 ? 0 : ((x7 ? x11 : 0) + (x7 ? 0 : ((x8 ? x12 : 0) + (x8 ? 0 : x11)))))));
    }
    inputs[0].grad[i] += d0;
  }
  // backward: logsumexp[negatives]((scale * ‖x‖) * s)
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    let d0 = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (s * h_scale);
      grad[ij] += w * x0;
    }
    inputs[0].grad[i] += d0;
  }
  return value;
}] }] }),
lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against proxies", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [SphereFaceLoss_embedding_norm], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives]((scale * ‖x‖) * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives]((scale * ‖x‖) * where(s < -0.8090169943749473, (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - 8.0, where(s < -0.30901699437494734, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s))) - 6.0, where(s < 0.30901699437494745, (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - 4.0, where(s < 0.8090169943749475, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s))) - 2.0, ((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s))))))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = 2 * s;
      const x2 = x1 * s - 1;
      const x3 = x1 * x2 - s;
      const x4 = x1 * (x1 * x3 - x2) - x3;
      const x5 = -x4;
      const v = x0 * ((s < (-0.8090169943749473)) ? (x4 - 8) : ((s < (-0.30901699437494734)) ? (x5 - 6) : ((s < 0.30901699437494745) ? (x4 - 4) : ((s < 0.8090169943749475) ? (x5 - 2) : x4))));
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives]((scale * ‖x‖) * where(s < -0.8090169943749473, (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - 8.0, where(s < -0.30901699437494734, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s))) - 6.0, where(s < 0.30901699437494745, (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - 4.0, where(s < 0.8090169943749475, (-(((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s))) - 2.0, ((2.0 * s) * (((2.0 * s) * (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s)) - (((2.0 * s) * s) - 1.0))) - (((2.0 * s) * (((2.0 * s) * s) - 1.0)) - s))))))
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x1 = s < (-0.8090169943749473);
      const x2 = 2 * s;
      const x3 = x2 * s - 1;
      const x4 = x2 * x3 - s;
      const x5 = x2 * x4 - x3;
      const x6 = x2 * x5 - x4;
      const x7 = s < (-0.30901699437494734);
      const x8 = -x6;
      const x9 = s < 0.30901699437494745;
      const x10 = s < 0.8090169943749475;
      const x11 = x1 ? (x6 - 8) : (x7 ? (x8 - 6) : (x9 ? (x6 - 4) : (x10 ? (x8 - 2) : x6)));
      const x12 = s * 2 + x2;
      const x13 = (x3 * 2 + x2 * x12) + (-1);
      const x14 = (x5 * 2 + x2 * ((x4 * 2 + x2 * x13) + (-x12))) + (-x13);
      const x15 = -x14;
      const v = x0 * x11;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (x11 * h_scale);
      grad[ij] += w * (x0 * ((x1 ? x14 : 0) + (x1 ? 0 : ((x7 ? x15 : 0) + (x7 ? 0 : ((x9 ? x14 : 0) + (x9 ? 0 : ((x10 ? x15 : 0) + (x10 ? 0 : x14)))))))));
    }
    inputs[0].grad[i] += d0;
  }
  // backward: logsumexp[negatives]((scale * ‖x‖) * s)
  for (let i = 0; i < m; i++) {
    const x0 = h_scale * inputs[0].data[i];
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    let d0 = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = x0 * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      d0 += w * (s * h_scale);
      grad[ij] += w * x0;
    }
    inputs[0].grad[i] += d0;
  }
  return value;
}] }] })
]),
},
"Sub-center ArcFace": {
about: "Sub-center ArcFace: `ArcFaceLoss` on the most similar of several centers of each class.  Deng et al. 2020.",
cite: "Deng et al. 2020",
kind: "SubCenterArcFaceLoss",
miner: null,
formula: "\\cos\\theta_c=\\max_k\\cos(x,w_{ck})",
similarity: "cosine",
centers: 3,
parameters: [{"name": "centers", "help": "centers of each class", "value": 3, "least": 1, "most": 5, "log": false, "whole": true, "choices": null}, {"name": "margin", "help": "margin in degrees", "value": 28.6, "least": 0.0, "most": 60.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 1.0, "most": 256.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["centers", "margin", "scale"], alone: [], matrices: [{ between: "samples against classes, whose proxies are pooled", similarity: { kind: "cosine", normalize: true }, pool: nearest, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](scale * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // logsumexp[positives](scale * where(s < (-cos(margin * 0.017453292519943295)), s - ((margin * 0.017453292519943295) * sin(margin * 0.017453292519943295)), (cos(margin * 0.017453292519943295) * s) - (sin(margin * 0.017453292519943295) * sqrt((1.0 - s) * (1.0 + s)))))
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  const c0 = h_margin * 0.017453292519943295;
  const c1 = Math.cos(c0);
  const c2 = -c1;
  const c3 = Math.sin(c0);
  const c4 = c0 * c3;
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = h_scale * ((s < c2) ? (s - c4) : (c1 * s - c3 * Math.sqrt(Math.max((1 - s) * (1 + s), 0))));
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? softplus(f1[i] - f2[i]) : 0;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += 0 < f0[i];
  }
  const value = f3 / Math.max(f4, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    const x0 = sigmoid(f1[i] - f2[i]);
    const x1 = 0 < f0[i];
    g1[i] += x1 ? w * x0 : 0;
    g2[i] += x1 ? w * (-x0) : 0;
  }
  // backward: logsumexp[positives](scale * where(s < (-cos(margin * 0.017453292519943295)), s - ((margin * 0.017453292519943295) * sin(margin * 0.017453292519943295)), (cos(margin * 0.017453292519943295) * s) - (sin(margin * 0.017453292519943295) * sqrt((1.0 - s) * (1.0 + s)))))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = s < c2;
      const x1 = 1 - s;
      const x2 = 1 + s;
      const x3 = x1 * x2;
      const x4 = 0 < x3;
      const v = h_scale * (x0 ? (s - c4) : (c1 * s - c3 * Math.sqrt(Math.max(x3, 0))));
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (h_scale * ((x0 ? 1 : 0) + (x0 ? 0 : (c1 + (-(x4 ? (((0.5 / Math.sqrt(Math.max(x4 ? x3 : 1, 0))) * ((-x2) + x1)) * c3) : 0))))));
    }
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  return value;
}] }] }),
},
"SupAP": {
about: "SupAP: an upper bound of one minus average precision, whose gradient does not vanish for large errors.",
cite: "Ramzi et al. 2021",
kind: "SupAPLoss",
miner: null,
formula: "1-\\frac{1}{|P_i|}\\sum_{p\\in P_i}\\frac{R^+_p}{R^+_p+R^-_p},\\quad R^+_p=1+\\sum_{j\\in P_i,\\,j\\ne p}[d_{pj}\\ge0],\\quad R^-_p=\\sum_{j\\in N_i}H(d_{pj})",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature of the step", "value": 0.01, "least": 0.001, "most": 0.1, "log": true, "whole": false, "choices": null}, {"name": "rho", "help": "slope for large errors", "value": 100.0, "least": 1.0, "most": 1000.0, "log": true, "whole": false, "choices": null}, {"name": "delta", "help": "where the line begins", "value": 0.05, "least": 0.01, "most": 0.2, "log": false, "whole": false, "choices": null}, {"name": "start", "help": "cost of an error, minus one half", "value": 0.5, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature", "rho", "delta", "start"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_delta = h["delta"];
  const h_rho = h["rho"];
  const h_start = h["start"];
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))
  const f1 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = sigmoid(x0 / h_temperature);
        const v = ((Math.abs(x0) > 1.7763568394002505e-15) && (0 < x0)) ? ((h_delta < x0) ? (h_rho * (x0 - h_delta) + 1.44) : (h_start + x1)) : x1;
        sum += v;
      }
      f1[ip] = sum;
    }
  }
  // count[positives](~(nonzero(s - s_p) & ((s - s_p) < 0.0)))
  const f2 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let count = 0;
      for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
        const ij = positives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        if (!((Math.abs(x0) > 1.7763568394002505e-15) && (x0 < 0))) count++;
      }
      f2[ip] = count;
    }
  }
  // mean[each positive](sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature))) / (at_least(where(0.0 < count[positives](1.0), count[positives](~(nonzero(s - s_p) & ((s - s_p) < 0.0))), 0.0), 1.0) + sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))))
  const f3 = new Float64Array(m);
  const f3_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    let sum = 0, count = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f1[ip] / (Math.max(x0 ? f2[ip] : 0, 1) + f1[ip]);
      sum += v; count++;
    }
    f3[i] = sum / Math.max(count, 1);
    f3_count[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += (0 < f0[i]) ? f3[i] : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += 0 < f0[i];
  }
  const value = f4 / Math.max(f5, 1);
  const g1 = new Float64Array(m * n);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    g3[i] += 0 < f0[i] ? w : 0;
  }
  // backward: mean[each positive](sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature))) / (at_least(where(0.0 < count[positives](1.0), count[positives](~(nonzero(s - s_p) & ((s - s_p) < 0.0))), 0.0), 1.0) + sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))))
  for (let i = 0; i < m; i++) {
    const x0 = 0 < f0[i];
    const g = g3[i];
    if (g === 0) continue;
    const count = f3_count[i];
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const x1 = Math.max(x0 ? f2[ip] : 0, 1) + f1[ip];
      const w = g * (1 / count);
      g1[ip] += w * (1 / x1 + (-f1[ip]) / (x1 * x1));
    }
  }
  // backward: sum[negatives](where(nonzero(s - s_p) & (0.0 < (s - s_p)), where(delta < (s - s_p), (rho * ((s - s_p) - delta)) + 1.44, start + sigmoid((s - s_p) / temperature)), sigmoid((s - s_p) / temperature)))
  const c0 = 1 / h_temperature;
  const c1 = -h_rho;
  const c2 = -c0;
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g1[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = s - s_p;
        const x1 = (Math.abs(x0) > 1.7763568394002505e-15) && (0 < x0);
        const x2 = h_delta < x0;
        const x3 = sigmoid(x0 / h_temperature);
        const x4 = x3 * (1 - x3);
        const x5 = x4 * c0;
        const x6 = x4 * c2;
        const w = g;
        grad[ij] += w * ((x1 ? ((x2 ? h_rho : 0) + (x2 ? 0 : x5)) : 0) + (x1 ? 0 : x5));
        d1 += w * ((x1 ? ((x2 ? c1 : 0) + (x2 ? 0 : x6)) : 0) + (x1 ? 0 : x6));
      }
      grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"SupCon": {
about: "Supervised contrastive loss: the mean log-probability of an anchor's positives among all others.",
cite: "Khosla et al. 2020",
kind: "SupConLoss",
miner: null,
formula: "\\frac{1}{|P_i|}\\sum_{j\\in P_i}-\\log\\frac{e^{s_{ij}/\\tau}}{\\sum_{k\\ne i}e^{s_{ik}/\\tau}}",
similarity: "cosine",
centers: 0,
parameters: [{"name": "temperature", "help": "temperature", "value": 0.1, "least": 0.01, "most": 1.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["temperature"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives, both } = pairs;
  const h_temperature = h["temperature"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // logsumexp[both](s / temperature)
  const f2 = new Float64Array(m);
  const f2_peak = new Float64Array(m);
  const f2_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = both.first[i], last = both.first[i + 1]; j < last; j++) {
      const ij = both.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f2[i] = Math.log(Math.max(total, 1)) + peak;
    f2_peak[i] = peak;
    f2_total[i] = total;
  }
  // mean[positives](s / temperature)
  const f3 = new Float64Array(m);
  const f3_count = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0, count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      sum += v; count++;
    }
    f3[i] = sum / Math.max(count, 1);
    f3_count[i] = count;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += ((0 < f0[i]) && (0 < f1[i])) ? (f2[i] - f3[i]) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) && (0 < f1[i]);
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    const x0 = (0 < f0[i]) && (0 < f1[i]);
    g2[i] += x0 ? w : 0;
    g3[i] += x0 ? -w : 0;
  }
  // backward: mean[positives](s / temperature)
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const count = f3_count[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const w = g * (1 / count);
      grad[ij] += w * (1 / h_temperature);
    }
  }
  // backward: logsumexp[both](s / temperature)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const peak = f2_peak[i];
    const total = f2_total[i];
    for (let j = both.first[i], last = both.first[i + 1]; j < last; j++) {
      const ij = both.entries[j];
      const s = data[ij];
      const v = s / h_temperature;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * (1 / h_temperature);
    }
  }
  return value;
}] }] }),
},
"Threshold-consistent margin": {
about: "Threshold-consistent margin: pulls positives above one threshold, pushes negatives below another.",
cite: "Zhang et al. 2024",
kind: "ThresholdConsistentMarginLoss",
miner: null,
formula: "w_+\\,\\mathrm{mean}_{s_p\\le m_+}(m_+-s_p)+w_-\\,\\mathrm{mean}_{s_n\\ge m_-}(s_n-m_-)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "positive_margin", "help": "positives below this similarity count", "value": 0.9, "least": 0.5, "most": 1.0, "log": false, "whole": false, "choices": null}, {"name": "negative_margin", "help": "negatives above this similarity count", "value": 0.5, "least": 0.0, "most": 0.7, "log": false, "whole": false, "choices": null}, {"name": "positive_weight", "help": "weight of positive pairs", "value": 1.0, "least": 0.0, "most": 10.0, "log": false, "whole": false, "choices": null}, {"name": "negative_weight", "help": "weight of negative pairs", "value": 1.0, "least": 0.0, "most": 10.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["positive_margin", "negative_margin", "positive_weight", "negative_weight"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_positive_margin = h["positive_margin"];
  const h_positive_weight = h["positive_weight"];
  const h_negative_margin = h["negative_margin"];
  const h_negative_weight = h["negative_weight"];
  // sum[positives](where(~((positive_margin - s) < 0.0), positive_weight * (positive_margin - s), 0.0))
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = h_positive_margin - s;
      const v = (!(x0 < 0)) ? (h_positive_weight * x0) : 0;
      sum += v;
    }
    f0[i] = sum;
  }
  let f1 = 0;
  for (let i = 0; i < m; i++) {
    f1 += f0[i];
  }
  // count[positives](~((positive_margin - s) < 0.0))
  const f2 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      if (!((h_positive_margin - s) < 0)) count++;
    }
    f2[i] = count;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += f2[i];
  }
  // sum[negatives](where(~((s - negative_margin) < 0.0), negative_weight * (s - negative_margin), 0.0))
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const x0 = s - h_negative_margin;
      const v = (!(x0 < 0)) ? (h_negative_weight * x0) : 0;
      sum += v;
    }
    f4[i] = sum;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += f4[i];
  }
  // count[negatives](~((s - negative_margin) < 0.0))
  const f6 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      if (!((s - h_negative_margin) < 0)) count++;
    }
    f6[i] = count;
  }
  let f7 = 0;
  for (let i = 0; i < m; i++) {
    f7 += f6[i];
  }
  const value = f1 / Math.max(f3, 1) + f5 / Math.max(f7, 1);
  const g0 = new Float64Array(m);
  let g1 = 0;
  const g4 = new Float64Array(m);
  let g5 = 0;
  g1 += 1 / Math.max(f3, 1);
  g5 += 1 / Math.max(f7, 1);
  for (let i = 0; i < m; i++) {
    const w = g5;
    g4[i] += w;
  }
  // backward: sum[negatives](where(~((s - negative_margin) < 0.0), negative_weight * (s - negative_margin), 0.0))
  for (let i = 0; i < m; i++) {
    const g = g4[i];
    if (g === 0) continue;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += !((s - h_negative_margin) < 0) ? w * h_negative_weight : 0;
    }
  }
  for (let i = 0; i < m; i++) {
    const w = g1;
    g0[i] += w;
  }
  // backward: sum[positives](where(~((positive_margin - s) < 0.0), positive_weight * (positive_margin - s), 0.0))
  for (let i = 0; i < m; i++) {
    const g = g0[i];
    if (g === 0) continue;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const w = g;
      grad[ij] += !((h_positive_margin - s) < 0) ? w * (-h_positive_weight) : 0;
    }
  }
  return value;
}] }] }),
},
"Triplet": {
about: "Triplet loss over all triplets of the batch, or over those that a miner chooses.",
cite: "Schroff et al. 2015, Hoffer & Ailon 2015, Hermans et al. 2017",
kind: "TripletLoss",
miner: null,
formula: "[s_{an}-s_{ap}+\\lambda]_+\\qquad\\text{or, soft,}\\qquad\\log\\bigl(1+e^{s_{an}-s_{ap}+\\lambda}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_margin = h["margin"];
  // sum[negatives](relu(s - (s_p - margin)))
  const f0 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = s_p - h_margin;
      let sum = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const v = Math.max(s - x0, 0);
        sum += v;
      }
      f0[ip] = sum;
    }
  }
  // sum[each positive](sum[negatives](relu(s - (s_p - margin))))
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f0[ip];
      sum += v;
    }
    f1[i] = sum;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += f1[i];
  }
  // count[negatives](0.0 < relu(s - (s_p - margin)))
  const f3 = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = s_p - h_margin;
      let count = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        if (0 < Math.max(s - x0, 0)) count++;
      }
      f3[ip] = count;
    }
  }
  // sum[each positive](count[negatives](0.0 < relu(s - (s_p - margin))))
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const v = f3[ip];
      sum += v;
    }
    f4[i] = sum;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += f4[i];
  }
  const value = f2 / Math.max(f5, 1);
  const g0 = new Float64Array(m * n);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g2;
    g1[i] += w;
  }
  // backward: sum[each positive](sum[negatives](relu(s - (s_p - margin))))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const w = g;
      g0[ip] += w;
    }
  }
  // backward: sum[negatives](relu(s - (s_p - margin)))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = s_p - h_margin;
      const g = g0[ip];
      if (g === 0) continue;
      let d1 = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x1 = 0 < (s - x0);
        const w = g;
        grad[ij] += x1 ? w : 0;
        d1 += x1 ? -w : 0;
      }
      grad[ip] += d1;
    }
  }
  return value;
}] }] }),
},
"Triplet, batch-hard": {
about: "Triplet loss over all triplets of the batch, or over those that a miner chooses.",
cite: "Schroff et al. 2015, Hoffer & Ailon 2015, Hermans et al. 2017",
kind: "TripletLoss",
miner: "BatchHardMiner",
formula: "[s_{an}-s_{ap}+\\lambda]_+\\qquad\\text{or, soft,}\\qquad\\log\\bigl(1+e^{s_{an}-s_{ap}+\\lambda}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_margin = h["margin"];
  // count[positives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // count[negatives](1.0)
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f1[i] = count;
  }
  // max[negatives](s)
  const f2 = new Float64Array(m);
  const f2_best = new Float64Array(m);
  const f2_ties = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = -Infinity, ties = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      if (v > best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f2[i] = best;
    f2_best[i] = best;
    f2_ties[i] = ties;
  }
  // min[positives](s)
  const f3 = new Float64Array(m);
  const f3_best = new Float64Array(m);
  const f3_ties = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let best = Infinity, ties = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      if (v < best) { best = v; ties = 1; } else if (v === best) ties++;
    }
    f3[i] = best;
    f3_best[i] = best;
    f3_ties[i] = ties;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    const x0 = (0 < f0[i]) && (0 < f1[i]);
    f4 += x0 ? Math.max((x0 ? f2[i] : 0) - ((x0 ? f3[i] : 0) - h_margin), 0) : 0;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    const x0 = (0 < f0[i]) && (0 < f1[i]);
    f5 += (x0 && (0 < Math.max((x0 ? f2[i] : 0) - ((x0 ? f3[i] : 0) - h_margin), 0))) ? 1 : 0;
  }
  const value = f4 / Math.max(f5, 1);
  const g2 = new Float64Array(m);
  const g3 = new Float64Array(m);
  let g4 = 0;
  g4 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g4;
    const x0 = (0 < f0[i]) && (0 < f1[i]);
    const x1 = 0 < ((x0 ? f2[i] : 0) - ((x0 ? f3[i] : 0) - h_margin));
    const x2 = x0 ? 1 : 0;
    g2[i] += x0 ? w * (x1 ? x2 : 0) : 0;
    g3[i] += x0 ? w * (x1 ? (-x2) : 0) : 0;
  }
  // backward: min[positives](s)
  for (let i = 0; i < m; i++) {
    const g = g3[i];
    if (g === 0) continue;
    const best = f3_best[i];
    const ties = f3_ties[i];
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = s;
      const w = g * (v === best ? 1 / ties : 0);
      if (w === 0) continue;
      grad[ij] += w;
    }
  }
  // backward: max[negatives](s)
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    const best = f2_best[i];
    const ties = f2_ties[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = s;
      const w = g * (v === best ? 1 / ties : 0);
      if (w === 0) continue;
      grad[ij] += w;
    }
  }
  return value;
}] }] }),
},
"Triplet, semi-hard": {
about: "Triplet loss over all triplets of the batch, or over those that a miner chooses.",
cite: "Schroff et al. 2015, Hoffer & Ailon 2015, Hermans et al. 2017",
kind: "TripletLoss",
miner: "SemiHardMiner",
formula: "[s_{an}-s_{ap}+\\lambda]_+\\qquad\\text{or, soft,}\\qquad\\log\\bigl(1+e^{s_{an}-s_{ap}+\\lambda}\\bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin", "value": 0.1, "least": 0.0, "most": 1.0, "log": false, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_margin = h["margin"];
  // max[negatives](where(s < s_p, s, -3e+38))
  const f0 = new Float64Array(m * n);
  const f0_best = new Float64Array(m * n);
  const f0_ties = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      let best = -Infinity, ties = 0;
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const v = (s < s_p) ? s : (-3e+38);
        if (v > best) { best = v; ties = 1; } else if (v === best) ties++;
      }
      f0[ip] = best;
      f0_best[ip] = best;
      f0_ties[ip] = ties;
    }
  }
  // sum[each positive](where(-1.5e+38 < max[negatives](where(s < s_p, s, -3e+38)), relu(where(-1.5e+38 < max[negatives](where(s < s_p, s, -3e+38)), max[negatives](where(s < s_p, s, -3e+38)), 0.0) - (s_p - margin)), 0.0))
  const f1 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = (-1.5e+38) < f0[ip];
      const v = x0 ? Math.max((x0 ? f0[ip] : 0) - (s_p - h_margin), 0) : 0;
      sum += v;
    }
    f1[i] = sum;
  }
  let f2 = 0;
  for (let i = 0; i < m; i++) {
    f2 += f1[i];
  }
  // sum[each positive](where((-1.5e+38 < max[negatives](where(s < s_p, s, -3e+38))) & (0.0 < relu(where(-1.5e+38 < max[negatives](where(s < s_p, s, -3e+38)), max[negatives](where(s < s_p, s, -3e+38)), 0.0) - (s_p - margin))), 1, 0.0))
  const f3 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = (-1.5e+38) < f0[ip];
      const v = (x0 && (0 < Math.max((x0 ? f0[ip] : 0) - (s_p - h_margin), 0))) ? 1 : 0;
      sum += v;
    }
    f3[i] = sum;
  }
  let f4 = 0;
  for (let i = 0; i < m; i++) {
    f4 += f3[i];
  }
  const value = f2 / Math.max(f4, 1);
  const g0 = new Float64Array(m * n);
  const g1 = new Float64Array(m);
  let g2 = 0;
  g2 += 1 / Math.max(f4, 1);
  for (let i = 0; i < m; i++) {
    const w = g2;
    g1[i] += w;
  }
  // backward: sum[each positive](where(-1.5e+38 < max[negatives](where(s < s_p, s, -3e+38)), relu(where(-1.5e+38 < max[negatives](where(s < s_p, s, -3e+38)), max[negatives](where(s < s_p, s, -3e+38)), 0.0) - (s_p - margin)), 0.0))
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const x0 = (-1.5e+38) < f0[ip];
      const x1 = 0 < ((x0 ? f0[ip] : 0) - (s_p - h_margin));
      const w = g;
      g0[ip] += x0 ? w * (x1 ? (x0 ? 1 : 0) : 0) : 0;
      grad[ip] += x0 ? w * (x1 ? (-1) : 0) : 0;
    }
  }
  // backward: max[negatives](where(s < s_p, s, -3e+38))
  for (let i = 0; i < m; i++) {
    for (let p = positives.first[i], last = positives.first[i + 1]; p < last; p++) {
      const ip = positives.entries[p];
      const s_p = data[ip];
      const g = g0[ip];
      if (g === 0) continue;
      const best = f0_best[ip];
      const ties = f0_ties[ip];
      for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
        const ij = negatives.entries[j];
        const s = data[ij];
        const x0 = s < s_p;
        const v = x0 ? s : (-3e+38);
        const w = g * (v === best ? 1 / ties : 0);
        if (w === 0) continue;
        grad[ij] += x0 ? w : 0;
      }
    }
  }
  return value;
}] }] }),
},
"Tuplet margin": {
about: "Tuplet margin loss: every positive, with an angular margin, against all negatives.",
cite: "Yu & Tao 2019",
kind: "TupletMarginLoss",
miner: null,
formula: "\\log\\Bigl(1+\\sum_{k\\in N_i}e^{\\sigma(\\cos\\theta_{ik}-\\cos(\\theta_{ij}-m))}\\Bigr)",
similarity: "cosine",
centers: 0,
parameters: [{"name": "margin", "help": "margin in degrees", "value": 5.73, "least": 0.0, "most": 20.0, "log": false, "whole": false, "choices": null}, {"name": "scale", "help": "scale", "value": 64.0, "least": 8.0, "most": 128.0, "log": true, "whole": false, "choices": null}],
exact: true,
run: lossOf({ names: ["margin", "scale"], alone: [], matrices: [{ between: "samples against samples", similarity: { kind: "cosine", normalize: true }, pool: null, mine: null, inputs: [], functions: [(S, pairs, h, inputs) => {
  const { rows: m, columns: n, data, grad } = S;
  const { positives, negatives } = pairs;
  const h_scale = h["scale"];
  const h_margin = h["margin"];
  // count[negatives](1.0)
  const f0 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      count++;
    }
    f0[i] = count;
  }
  // logsumexp[negatives](scale * s)
  const f1 = new Float64Array(m);
  const f1_peak = new Float64Array(m);
  const f1_total = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let peak = -Number.MAX_VALUE, total = 0;
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      if (v > peak) { total = total * Math.exp(peak - v) + 1; peak = v; } else total += Math.exp(v - peak);
    }
    f1[i] = Math.log(Math.max(total, 1)) + peak;
    f1_peak[i] = peak;
    f1_total[i] = total;
  }
  // sum[positives](softplus(logsumexp[negatives](scale * s) - (scale * ((cos(margin * 0.017453292519943295) * s) + (sin(margin * 0.017453292519943295) * sqrt((1.0 - s) * (1.0 + s)))))))
  const f2 = new Float64Array(m);
  const c0 = h_margin * 0.017453292519943295;
  const c1 = Math.cos(c0);
  const c2 = Math.sin(c0);
  for (let i = 0; i < m; i++) {
    let sum = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const v = softplus(f1[i] - h_scale * (c1 * s + c2 * Math.sqrt(Math.max((1 - s) * (1 + s), 0))));
      sum += v;
    }
    f2[i] = sum;
  }
  let f3 = 0;
  for (let i = 0; i < m; i++) {
    f3 += (0 < f0[i]) ? f2[i] : 0;
  }
  // count[positives](1.0)
  const f4 = new Float64Array(m);
  for (let i = 0; i < m; i++) {
    let count = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      count++;
    }
    f4[i] = count;
  }
  let f5 = 0;
  for (let i = 0; i < m; i++) {
    f5 += (0 < f0[i]) ? f4[i] : 0;
  }
  const value = f3 / Math.max(f5, 1);
  const g1 = new Float64Array(m);
  const g2 = new Float64Array(m);
  let g3 = 0;
  g3 += 1 / Math.max(f5, 1);
  for (let i = 0; i < m; i++) {
    const w = g3;
    g2[i] += 0 < f0[i] ? w : 0;
  }
  // backward: sum[positives](softplus(logsumexp[negatives](scale * s) - (scale * ((cos(margin * 0.017453292519943295) * s) + (sin(margin * 0.017453292519943295) * sqrt((1.0 - s) * (1.0 + s)))))))
  for (let i = 0; i < m; i++) {
    const g = g2[i];
    if (g === 0) continue;
    let d0 = 0;
    for (let j = positives.first[i], last = positives.first[i + 1]; j < last; j++) {
      const ij = positives.entries[j];
      const s = data[ij];
      const x0 = 1 - s;
      const x1 = 1 + s;
      const x2 = x0 * x1;
      const x3 = sigmoid(f1[i] - h_scale * (c1 * s + c2 * Math.sqrt(Math.max(x2, 0))));
      const x4 = 0 < x2;
      const w = g;
      d0 += w * x3;
      grad[ij] += w * (x3 * (-(h_scale * (c1 + (x4 ? (((0.5 / Math.sqrt(Math.max(x4 ? x2 : 1, 0))) * ((-x1) + x0)) * c2) : 0)))));
    }
    g1[i] += d0;
  }
  // backward: logsumexp[negatives](scale * s)
  for (let i = 0; i < m; i++) {
    const g = g1[i];
    if (g === 0) continue;
    const peak = f1_peak[i];
    const total = f1_total[i];
    for (let j = negatives.first[i], last = negatives.first[i + 1]; j < last; j++) {
      const ij = negatives.entries[j];
      const s = data[ij];
      const v = h_scale * s;
      const w = g * (Math.exp(v - peak) / total);
      if (w === 0) continue;
      grad[ij] += w * h_scale;
    }
  }
  return value;
}] }] }),
},
};
})();
