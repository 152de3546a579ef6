//! Steps that stream and batch share: θ with its scale and its link to w, the step rules of OBSCURE, Pegasos-MKL, OM-2 and
//! PA-I, and the upper layer of OMCL.

mod combiner;
mod rules;
mod theta;

pub(crate) use combiner::Combiner;
pub(crate) use rules::{Adaptive, Rule, Seen, om2_step, passive_aggressive_step};
pub(crate) use theta::{Follow, Lengths, Theta, weighted_sums};
