//! Rows of several files brought into one order, by their ids.

use super::budget::Budget;
use super::table::FileSamples;
use multikernel::data::{Labels, ViewData};
use multikernel::error::{Error, Result, some_of};
use std::collections::HashMap;

/// Brings all parts into the order of the first.
pub(super) fn join(parts: &mut [FileSamples], by_id: bool, budget: &mut Budget) -> Result<()> {
    let Some((first, rest)) = parts.split_first_mut() else {
        return Ok(());
    };
    if let (true, Some(ids), false) = (by_id, &first.ids, rest.is_empty()) {
        unique(&first.place, ids)?;
    }
    for part in rest {
        match (by_id, &first.ids, &part.ids) {
            (true, Some(wanted), Some(ids)) => {
                let order = join_order(&first.place, wanted, &part.place, ids, true)?;
                reorder(part, &order, budget)?;
            }
            _ if part.rows != first.rows => {
                return Err(Error::input(
                    &part.place,
                    format!(
                        "it has {} samples but {} has {}",
                        part.rows, first.place, first.rows
                    ),
                    "give the same samples in the same order, or name an id column to join them by",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn reorder(part: &mut FileSamples, order: &[usize], budget: &mut Budget) -> Result<()> {
    if order.iter().enumerate().all(|(i, &r)| i == r) && order.len() == part.rows {
        return Ok(());
    }
    for view in &mut part.views {
        let bytes = size_of_view(&view.data);
        budget.charge(&part.place, bytes)?;
        view.data = view.data.select(order)?;
        budget.refund(bytes);
    }
    part.labels = part.labels.take().map(|l| l.select(order));
    part.ids = part
        .ids
        .take()
        .map(|ids| order.iter().map(|&r| ids[r].clone()).collect());
    part.rows = order.len();
    Ok(())
}

/// Ids of the first part that has them, labels likewise; labels that are given twice must agree.
pub(super) fn collect_names(
    parts: &mut [FileSamples],
) -> Result<(Option<Vec<String>>, Option<Labels>)> {
    let mut ids = None;
    let mut labels: Option<(String, Labels)> = None;
    for part in parts {
        ids = ids.or(part.ids.take());
        match (part.labels.take(), &labels) {
            (Some(own), None) => labels = Some((part.place.clone(), own)),
            (Some(own), Some((place, before))) => {
                let differs = (0..own.len().min(before.len()))
                    .find(|&i| own.spelling(i) != before.spelling(i));
                if let Some(i) = differs {
                    return Err(Error::input(
                        format!("{} row {}", part.place, i + 1),
                        format!(
                            "the label is {} but in {place} it is {}",
                            some_of([own.spelling(i)]),
                            some_of([before.spelling(i)])
                        ),
                        "give labels once, or the same samples in the same order",
                    ));
                }
            }
            (None, _) => {}
        }
    }
    Ok((ids, labels.map(|(_, labels)| labels)))
}

fn unique<'i>(place: &str, ids: &'i [String]) -> Result<HashMap<&'i str, usize>> {
    let mut rows = HashMap::with_capacity(ids.len());
    let mut twice = Vec::new();
    for (row, id) in ids.iter().enumerate() {
        if rows.insert(id.as_str(), row).is_some() {
            twice.push(id);
        }
    }
    if twice.is_empty() {
        return Ok(rows);
    }
    Err(Error::input(
        place,
        format!(
            "{} ids occur more than once: {}",
            twice.len(),
            some_of(&twice)
        ),
        "give every sample an id of its own",
    ))
}

/// The rows of `ids` in the order of `wanted`.
pub(super) fn join_order(
    first: &str,
    wanted: &[String],
    place: &str,
    ids: &[String],
    exactly: bool,
) -> Result<Vec<usize>> {
    let rows = unique(place, ids)?;
    let mut order = Vec::with_capacity(wanted.len());
    let mut missing = Vec::new();
    for id in wanted {
        match rows.get(id.as_str()) {
            Some(&row) => order.push(row),
            None => missing.push(id),
        }
    }
    if !missing.is_empty() {
        return Err(Error::input(
            place,
            format!(
                "{} ids of {first} are missing: {}",
                missing.len(),
                some_of(&missing)
            ),
            "give every sample in every file",
        ));
    }
    if exactly && ids.len() > wanted.len() {
        let known = unique(first, wanted)?;
        let extra: Vec<&String> = ids
            .iter()
            .filter(|id| !known.contains_key(id.as_str()))
            .collect();
        return Err(Error::input(
            place,
            format!(
                "{} ids are not in {first}: {}",
                extra.len(),
                some_of(&extra)
            ),
            "give every sample in every file",
        ));
    }
    Ok(order)
}

fn size_of_view(data: &ViewData) -> u64 {
    match data {
        ViewData::Dense(x) => 4 * x.values().len() as u64,
        ViewData::Sparse(x) => 8 * (x.entries() + x.rows()) as u64,
        ViewData::Strings(x) => x.iter().map(|s| 24 + s.len() as u64).sum(),
        ViewData::Pairwise(x) => x.bytes_in_memory(),
    }
}
