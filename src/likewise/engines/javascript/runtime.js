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
