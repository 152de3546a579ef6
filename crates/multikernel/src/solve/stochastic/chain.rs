//! Chains of labels: every place of a chain has kernels with all other places, and neighbouring labels have features of their
//! own. The most violating labelling is found by Viterbi's algorithm.
//!
//! φ_m(x, y) = Σ_t e_{y_t} ⊗ ψ_m(x_t) for the kernels of places, and counts of neighbouring labels for each of the
//! [`Neighbours`] asked for, which are kernels like the others: how much to trust them is learned. Δ is the number of wrong
//! labels.

use super::structured::{Structure, Structured};
use crate::error::{Error, Result};
use crate::gram::{Coefficients, Gram, KernelRows};

/// What is counted of neighbouring labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbours {
    /// Label b follows label a.
    Pairs,
    /// Label b follows label a at place t of the chain.
    PairsAtPlace,
}

/// Chains whose places are the samples of a Gram, in order.
#[derive(Debug)]
pub struct Chains<'g> {
    every: KernelRows<'g>,
    place_kernels: usize,
    /// Chain i has places starts[i]..starts[i + 1].
    starts: Vec<usize>,
    longest: usize,
    labels: Vec<Vec<u32>>,
    n_labels: usize,
    neighbours: Vec<Neighbours>,
    /// K_m between the places of one chain, chain after chain, kernel after kernel.
    within: Vec<Vec<f64>>,
}

/// θ of chains.
#[derive(Debug, Clone)]
pub struct ChainState {
    /// One number per place and label.
    coefficients: Vec<f64>,
    /// (K_m coefficients): label after label, kernel after kernel, one number per place.
    scores: Vec<f64>,
    /// One vector per kind of neighbours.
    neighbours: Vec<Vec<f64>>,
}

impl<'g> Chains<'g> {
    /// Chains with these labels (0 up to `n_labels`); their places are the samples of `gram`, chain after chain.
    pub fn new(
        gram: &'g Gram,
        labels: Vec<Vec<u32>>,
        n_labels: usize,
        neighbours: &[Neighbours],
    ) -> Result<Self> {
        let mut starts = vec![0];
        for chain in &labels {
            starts.push(starts[starts.len() - 1] + chain.len());
        }
        let places = starts[labels.len()];
        if places != gram.n_rows() || places != gram.n_cols() {
            return Err(Error::input(
                "labels",
                format!(
                    "the chains have {places} places but the kernels {} samples",
                    gram.n_rows()
                ),
                "give one label for each sample, chain after chain",
            ));
        }
        let wrong = |chain: &Vec<u32>| chain.iter().any(|y| *y as usize >= n_labels);
        if let Some(i) = labels.iter().position(|c| c.is_empty() || wrong(c)) {
            return Err(Error::input(
                format!("chain {}", i + 1),
                "it has no place, or a label that does not exist",
                format!("give labels from 0 to {}", n_labels.saturating_sub(1)),
            ));
        }
        let longest = labels.iter().map(Vec::len).max().unwrap_or(0);
        let within = labels
            .iter()
            .zip(&starts)
            .map(|(chain, &start)| {
                let own: Vec<usize> = (start..start + chain.len()).collect();
                let block = gram.subset(&own);
                let kernels = 0..gram.n_kernels();
                kernels
                    .flat_map(|m| block.kernel(m).matrix())
                    .map(f64::from)
                    .collect()
            })
            .collect();
        Ok(Chains {
            every: KernelRows::new(gram),
            place_kernels: gram.n_kernels(),
            starts,
            longest,
            labels,
            n_labels,
            neighbours: neighbours.to_vec(),
            within,
        })
    }

    /// Labels of new chains: `cross` holds the kernels between their places, chain after chain, and the places trained on.
    ///
    /// # Errors
    /// If the lengths do not add up to the rows of `cross`, or its columns are other places.
    pub fn label(
        &self,
        model: &Structured<Chains<'_>>,
        cross: &Gram,
        lengths: &[usize],
    ) -> Result<Vec<Vec<u32>>> {
        let places: usize = lengths.iter().sum();
        if places != cross.n_rows() || cross.n_cols() != self.n_places() {
            return Err(Error::input(
                "kernels of new places",
                format!(
                    "{} × {} for {places} places and {} trained on",
                    cross.n_rows(),
                    cross.n_cols(),
                    self.n_places()
                ),
                "give one row for each new place and one column for each place trained on",
            ));
        }
        let a = Coefficients::new(&model.state.coefficients, self.n_labels);
        let weights = &model.weights[..self.place_kernels];
        let scores = cross.combine(weights).product(a);
        let mut rest = &scores[..];
        Ok(lengths
            .iter()
            .map(|length| {
                let (own, after) = rest.split_at(length * self.n_labels);
                rest = after;
                self.viterbi(own, &model.state, &model.weights)
            })
            .collect())
    }

    fn n_places(&self) -> usize {
        self.starts[self.labels.len()]
    }

    /// Where the count of label b after label a at place t stands.
    fn feature(&self, kind: Neighbours, t: usize, a: u32, b: u32) -> usize {
        let pair = a as usize * self.n_labels + b as usize;
        match kind {
            Neighbours::Pairs => pair,
            // Places beyond the longest chain of the training set count as its last.
            Neighbours::PairsAtPlace => {
                t.min(self.longest - 1) * self.n_labels * self.n_labels + pair
            }
        }
    }

    fn features(&self, kind: Neighbours) -> usize {
        let pairs = self.n_labels * self.n_labels;
        match kind {
            Neighbours::Pairs => pairs,
            Neighbours::PairsAtPlace => pairs * self.longest,
        }
    }

    /// Visits the features of neighbours of a labelling.
    fn for_features(&self, kind: Neighbours, y: &[u32], mut take: impl FnMut(usize)) {
        for (t, pair) in y.windows(2).enumerate() {
            take(self.feature(kind, t + 1, pair[0], pair[1]));
        }
    }

    /// The labelling with the largest sum of scores (place after place, one number per label) and weights of neighbours.
    fn viterbi(&self, scores: &[f64], state: &ChainState, weights: &[f64]) -> Vec<u32> {
        let k = self.n_labels;
        let length = scores.len() / k;
        if length == 0 {
            return Vec::new();
        }
        let of_pair = |t: usize, a: usize, b: usize| -> f64 {
            let kinds = self.neighbours.iter().zip(&state.neighbours);
            let weights = &weights[self.place_kernels..];
            kinds
                .zip(weights)
                .map(|((&kind, theta), w)| w * theta[self.feature(kind, t, a as u32, b as u32)])
                .sum()
        };
        let mut best = scores[..k].to_vec();
        let mut from = vec![0usize; length * k];
        for t in 1..length {
            let mut next = vec![f64::NEG_INFINITY; k];
            for (b, next) in next.iter_mut().enumerate() {
                for (a, before) in best.iter().enumerate() {
                    let value = before + of_pair(t, a, b);
                    if value > *next {
                        *next = value;
                        from[t * k + b] = a;
                    }
                }
                *next += scores[t * k + b];
            }
            best = next;
        }
        let mut at = (0..k).fold(0, |top, y| if best[y] > best[top] { y } else { top });
        let mut labels = vec![0; length];
        for t in (0..length).rev() {
            labels[t] = at as u32;
            at = from[t * k + at];
        }
        labels
    }
}

impl Structure for Chains<'_> {
    type Output = Vec<u32>;
    type State = ChainState;

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn n_kernels(&self) -> usize {
        self.place_kernels + self.neighbours.len()
    }

    fn truth(&self, i: usize) -> &Vec<u32> {
        &self.labels[i]
    }

    fn delta(&self, i: usize, y: &Vec<u32>) -> f64 {
        let wrong = self.labels[i].iter().zip(y).filter(|(a, b)| a != b);
        wrong.count() as f64
    }

    fn kernels(&self, i: usize, y: &Vec<u32>, j: usize, z: &Vec<u32>, out: &mut [f64]) {
        let n = self.n_places();
        let rows: Vec<usize> = (self.starts[i]..self.starts[i + 1]).collect();
        let mut made = vec![0.0; rows.len() * self.every.n_computed() * n];
        self.every.compute(&rows, &mut made);
        let width = self.every.n_computed() * n;
        out.fill(0.0);
        for (r, &row) in rows.iter().enumerate() {
            for (m, out) in out[..self.place_kernels].iter_mut().enumerate() {
                let values = self.every.row(m, row, &made[r * width..(r + 1) * width]);
                let factor = self.every.factor(m);
                for (t, place) in (self.starts[j]..self.starts[j + 1]).enumerate() {
                    if y[r] == z[t] {
                        *out += factor * f64::from(values[place]);
                    }
                }
            }
        }
        for (&kind, out) in self.neighbours.iter().zip(&mut out[self.place_kernels..]) {
            let mut counts = vec![0.0; self.features(kind)];
            self.for_features(kind, y, |f| counts[f] += 1.0);
            self.for_features(kind, z, |f| *out += counts[f]);
        }
    }

    fn zero(&self) -> ChainState {
        let n = self.n_places();
        ChainState {
            coefficients: vec![0.0; n * self.n_labels],
            scores: vec![0.0; n * self.n_labels * self.place_kernels],
            neighbours: self
                .neighbours
                .iter()
                .map(|&kind| vec![0.0; self.features(kind)])
                .collect(),
        }
    }

    fn add(&self, state: &mut ChainState, i: usize, y: &Vec<u32>, z: &Vec<u32>, c: f64) {
        let n = self.n_places();
        let start = self.starts[i];
        let places: Vec<usize> = (0..y.len()).filter(|&t| y[t] != z[t]).collect();
        let rows: Vec<usize> = places.iter().map(|t| start + t).collect();
        let width = self.every.n_computed() * n;
        let mut made = vec![0.0; rows.len() * width];
        self.every.compute(&rows, &mut made);
        for (r, (&t, &row)) in places.iter().zip(&rows).enumerate() {
            for (label, c) in [(y[t] as usize, c), (z[t] as usize, -c)] {
                state.coefficients[row * self.n_labels + label] += c;
                for m in 0..self.place_kernels {
                    let own = &made[r * width..(r + 1) * width];
                    let values = self.every.row(m, row, own);
                    let factor = self.every.factor(m);
                    let at = (label * self.place_kernels + m) * n;
                    let scores = state.scores[at..at + n].iter_mut();
                    let c = c * factor;
                    scores
                        .zip(values)
                        .for_each(|(s, v)| *s += c * f64::from(*v));
                }
            }
        }
        for (&kind, theta) in self.neighbours.iter().zip(&mut state.neighbours) {
            self.for_features(kind, y, |f| theta[f] += c);
            self.for_features(kind, z, |f| theta[f] -= c);
        }
    }

    fn scale(&self, state: &mut ChainState, factor: f64) {
        let all = state.neighbours.iter_mut().flatten();
        let all = all.chain(&mut state.coefficients).chain(&mut state.scores);
        all.for_each(|v| *v *= factor);
    }

    fn products(&self, state: &ChainState, i: usize, y: &Vec<u32>, z: &Vec<u32>, out: &mut [f64]) {
        let n = self.n_places();
        out.fill(0.0);
        for (t, (&a, &b)) in y.iter().zip(z).enumerate().filter(|(_, (a, b))| a != b) {
            let place = self.starts[i] + t;
            for (m, out) in out[..self.place_kernels].iter_mut().enumerate() {
                let at = |label: u32| (label as usize * self.place_kernels + m) * n + place;
                *out += state.scores[at(a)] - state.scores[at(b)];
            }
        }
        let kinds = self.neighbours.iter().zip(&state.neighbours);
        for ((&kind, theta), out) in kinds.zip(&mut out[self.place_kernels..]) {
            self.for_features(kind, y, |f| *out += theta[f]);
            self.for_features(kind, z, |f| *out -= theta[f]);
        }
    }

    fn best(&self, state: &ChainState, weights: &[f64], i: usize, violating: bool) -> Vec<u32> {
        let (n, k) = (self.n_places(), self.n_labels);
        let truth = &self.labels[i];
        let mut scores = vec![0.0; truth.len() * k];
        for (t, scores) in scores.chunks_mut(k).enumerate() {
            let place = self.starts[i] + t;
            for (label, score) in scores.iter_mut().enumerate() {
                let at = |m: usize| (label * self.place_kernels + m) * n + place;
                *score = (0..self.place_kernels)
                    .map(|m| weights[m] * state.scores[at(m)])
                    .sum();
                if violating && truth[t] as usize != label {
                    *score += 1.0;
                }
            }
        }
        self.viterbi(&scores, state, weights)
    }

    fn squared_lengths(&self, i: usize, y: &Vec<u32>, z: &Vec<u32>, out: &mut [f64]) {
        let length = y.len();
        out.fill(0.0);
        let other: Vec<usize> = (0..length).filter(|&t| y[t] != z[t]).collect();
        for (m, out) in out[..self.place_kernels].iter_mut().enumerate() {
            let own = &self.within[i][m * length * length..(m + 1) * length * length];
            for &t in &other {
                for &u in &other {
                    let same = |a: u32, b: u32| f64::from(u8::from(a == b));
                    let both = same(y[t], y[u]) + same(z[t], z[u]);
                    let crossed = same(y[t], z[u]) + same(z[t], y[u]);
                    *out += (both - crossed) * own[t * length + u];
                }
            }
            *out = out.max(0.0);
        }
        for (&kind, out) in self.neighbours.iter().zip(&mut out[self.place_kernels..]) {
            let mut counts = vec![0.0; self.features(kind)];
            self.for_features(kind, y, |f| counts[f] += 1.0);
            self.for_features(kind, z, |f| counts[f] -= 1.0);
            *out = counts.iter().map(|c: &f64| c * c).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, View, ViewData, Views};
    use crate::gram::{KernelSet, Options};
    use crate::kernel::KernelSpec;
    use crate::norm::{Norm, NormSpec};
    use crate::problem::{Limits, MulticlassProblem, Objective};
    use crate::random::Random;
    use crate::solve::stochastic::{StochasticSettings, obscure, obscure_structured};

    const LABELS: usize = 3;
    const BOTH: [Neighbours; 2] = [Neighbours::Pairs, Neighbours::PairsAtPlace];

    /// Places around one centre per label, chains whose labels follow one another.
    fn problem(chains: usize, length: usize) -> (KernelSet, Vec<Vec<u32>>) {
        let mut random = Random::new(5);
        let mut labels = Vec::new();
        let mut values = Vec::new();
        for _ in 0..chains {
            let mut y = random.below(LABELS) as u32;
            let mut chain = Vec::new();
            for _ in 0..length {
                chain.push(y);
                values.push((f64::from(y) + 0.9 * random.normal()) as f32);
                values.push((f64::from(y % 2) + 0.9 * random.normal()) as f32);
                if random.uniform() < 0.8 {
                    y = (y + 1) % LABELS as u32;
                }
            }
            labels.push(chain);
        }
        let view = View {
            name: "x".into(),
            columns: Vec::new(),
            data: ViewData::Dense(Dense::new(chains * length, 2, values).unwrap()),
        };
        let specs: Vec<KernelSpec> = ["rbf:width=2", "linear:normalize=center"]
            .iter()
            .flat_map(|s| KernelSpec::parse(s).unwrap())
            .collect();
        let views = Views::new(vec![view]).unwrap();
        let set = KernelSet::new(&specs, &views, &Options::default(), &()).unwrap();
        (set, labels)
    }

    fn labellings(length: usize) -> Vec<Vec<u32>> {
        (0..LABELS.pow(length as u32))
            .map(|mut code| {
                (0..length)
                    .map(|_| {
                        let y = code % LABELS;
                        code /= LABELS;
                        y as u32
                    })
                    .collect()
            })
            .collect()
    }

    fn limits() -> Limits {
        Limits {
            tolerance: 1e-9,
            max_rounds: usize::MAX,
            deadline: None,
            memory: 1 << 30,
            confirm: true,
        }
    }

    fn norm(r: &str, kernels: usize) -> Norm {
        let spec: NormSpec = format!("block:{r}").parse().unwrap();
        Norm::new(spec, kernels, &[], &[]).unwrap()
    }

    #[test]
    fn stored_products_are_those_of_the_terms_and_the_oracle_finds_the_best() {
        let (set, labels) = problem(5, 4);
        let chains = Chains::new(set.gram(), labels, LABELS, &BOTH).unwrap();
        let all = labellings(4);
        let mut random = Random::new(1);
        let mut state = chains.zero();
        let mut terms: Vec<(usize, Vec<u32>, f64)> = Vec::new();
        let kernels = chains.n_kernels();
        for _ in 0..12 {
            let (i, c) = (random.below(5), random.normal());
            let y = &all[random.below(all.len())];
            let z = &all[random.below(all.len())];
            chains.add(&mut state, i, y, z, c);
            chains.scale(&mut state, 0.9);
            terms.push((i, y.clone(), c));
            terms.push((i, z.clone(), -c));
            terms.iter_mut().for_each(|(.., c)| *c *= 0.9);
        }
        let weights: Vec<f64> = (0..kernels).map(|_| random.uniform()).collect();
        let mut part = vec![0.0; kernels];
        for i in 0..5 {
            let (y, z) = (&all[random.below(all.len())], &all[random.below(all.len())]);
            let mut expected = vec![0.0; kernels];
            for (j, u, c) in &terms {
                for (labelling, sign) in [(y, 1.0), (z, -1.0)] {
                    chains.kernels(i, labelling, *j, u, &mut part);
                    expected
                        .iter_mut()
                        .zip(&part)
                        .for_each(|(e, p)| *e += sign * c * p);
                }
            }
            let mut products = vec![0.0; kernels];
            chains.products(&state, i, y, z, &mut products);
            for (p, e) in products.iter().zip(&expected) {
                assert!((p - e).abs() < 1e-9 * (1.0 + e.abs()), "{p} {e}");
            }
            let mut lengths = vec![0.0; kernels];
            chains.squared_lengths(i, y, z, &mut lengths);
            for (m, l) in lengths.iter().enumerate() {
                let mut sum = 0.0;
                for (a, b, sign) in [(y, y, 1.0), (z, z, 1.0), (y, z, -2.0)] {
                    chains.kernels(i, a, i, b, &mut part);
                    sum += sign * part[m];
                }
                assert!(
                    (l - sum).abs() < 1e-5 * (1.0 + sum.abs()),
                    "kernel {m}: {l} {sum}"
                );
            }
            for violating in [false, true] {
                let value = |y: &Vec<u32>| {
                    let mut products = vec![0.0; kernels];
                    chains.products(&state, i, y, chains.truth(i), &mut products);
                    let cost = if violating { chains.delta(i, y) } else { 0.0 };
                    cost + crate::math::dot(&weights, &products)
                };
                let found = value(&chains.best(&state, &weights, i, violating));
                let best = all.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                assert!(
                    (found - best).abs() < 1e-9 * (1.0 + best.abs()),
                    "{found} {best}"
                );
            }
        }
    }

    #[test]
    fn chains_of_one_place_are_the_multiclass_problem() {
        let (set, labels) = problem(40, 1);
        let classes: Vec<u32> = labels.iter().map(|chain| chain[0]).collect();
        let samples: Vec<usize> = (0..40).collect();
        let costs: Vec<f64> = (0..40).map(|i| 0.5 + 0.1 * f64::from(i % 4)).collect();
        let settings = StochasticSettings {
            online_epochs: 2,
            epochs: 15,
            ..StochasticSettings::default()
        };
        for r in ["2", "1.2"] {
            let chains = Chains::new(set.gram(), labels.clone(), LABELS, &[]).unwrap();
            let norm = norm(r, 2);
            let model =
                obscure_structured(&chains, &samples, &costs, &norm, &settings, &limits(), &())
                    .unwrap();
            let problem = MulticlassProblem {
                classes: &classes,
                n_classes: LABELS,
                costs: &costs,
            };
            let objective = Objective::Multiclass(problem);
            let other = obscure(
                set.gram(),
                &norm,
                &objective,
                &settings,
                &limits(),
                None,
                &(),
            )
            .unwrap();
            for (a, b) in model.history.iter().zip(&other.history) {
                let apart = (a.primal - b.look.primal).abs();
                assert!(
                    apart < 1e-6 * b.look.primal,
                    "{} {}",
                    a.primal,
                    b.look.primal
                );
            }
            assert!(model.certificate.dual <= other.certificate.primal);
            assert!(other.certificate.dual <= model.certificate.primal);
        }
    }

    #[test]
    fn neighbours_help_and_the_gap_closes() {
        let (set, labels) = problem(60, 6);
        let train: Vec<usize> = (0..40).collect();
        let costs = vec![1.0; 40];
        let settings = StochasticSettings {
            epochs: 60,
            ..StochasticSettings::default()
        };
        let right = |neighbours: &[Neighbours]| {
            let chains = Chains::new(set.gram(), labels.clone(), LABELS, neighbours).unwrap();
            let norm = norm("1.5", chains.n_kernels());
            let model =
                obscure_structured(&chains, &train, &costs, &norm, &settings, &limits(), &())
                    .unwrap();
            assert!(
                model.certificate.relative_gap() < 0.1,
                "{:?}",
                model.certificate
            );
            assert!(
                model
                    .terms
                    .iter()
                    .all(|(i, y, c)| *c >= 0.0 && y != chains.truth(*i))
            );
            let wrong: f64 = (40..60)
                .map(|i| chains.delta(i, &model.predict(&chains, i)))
                .sum();
            // New chains by their kernels alone are labelled alike.
            let places: Vec<usize> = (40 * 6..60 * 6).collect();
            let everyone: Vec<usize> = (0..60 * 6).collect();
            let cross = set.gram().block(&places, &everyone);
            let lengths = vec![6; 20];
            let labels = chains.label(&model, &cross, &lengths).unwrap();
            for (i, labels) in (40..60).zip(labels) {
                assert_eq!(labels, model.predict(&chains, i));
            }
            assert!(chains.label(&model, &cross, &[3]).is_err());
            1.0 - wrong / 120.0
        };
        let (alone, together) = (right(&[]), right(&BOTH));
        assert!(together > alone + 0.05, "{alone} {together}");
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let (set, labels) = problem(5, 4);
        assert!(Chains::new(set.gram(), labels[1..].to_vec(), LABELS, &BOTH).is_err());
        assert!(Chains::new(set.gram(), labels.clone(), 2, &BOTH).is_err());
        let chains = Chains::new(set.gram(), labels, LABELS, &BOTH).unwrap();
        let settings = StochasticSettings::default();
        let train = |samples: &[usize], costs: &[f64], r: &str| {
            let norm = norm(r, chains.n_kernels());
            obscure_structured(&chains, samples, costs, &norm, &settings, &limits(), &()).is_err()
        };
        assert!(train(&[0, 9], &[1.0; 2], "1.5"));
        assert!(train(&[0, 1], &[1.0], "1.5"));
        assert!(train(&[0, 1], &[1.0, 0.0], "1.5"));
        assert!(train(&[0, 1], &[1.0; 2], "1"));
        assert!(train(&[], &[], "1.5"));
    }
}
