//! How much memory there is. Known on Linux; elsewhere honestly assumed.

use std::fs;

/// Assumed where the system does not tell.
const ASSUMED: u64 = 4 << 30;

/// Three quarters of the bytes that could be allocated now without swapping, within the limits of the control group.
pub(crate) fn memory_to_use() -> u64 {
    let system = field("/proc/meminfo", "MemAvailable:").unwrap_or(ASSUMED);
    group_memory().map_or(system, |group| group.min(system)) / 4 * 3
}

/// What the control group (a container's limit) leaves.
fn group_memory() -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let path = format!("/sys/fs/cgroup/{name}");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    number("memory.max")?.checked_sub(number("memory.current")?)
}

/// A field of a file of "Name:  1234 kB" lines, in bytes.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
