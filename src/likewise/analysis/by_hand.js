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
