//! Samples with what is known about them.

use super::{Labels, Views};

/// Samples and what is known about them.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// The views.
    pub views: Views,
    /// The labels, if there are any.
    pub labels: Option<Labels>,
    /// What was chosen or changed on the way, in sentences for the user.
    pub notes: Vec<String>,
}
