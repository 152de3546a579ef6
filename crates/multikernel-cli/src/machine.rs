//! What this machine and this process have in memory. Known on Linux; elsewhere honestly unknown.

use std::fs;

/// Assumed where the system does not tell.
const ASSUMED_AVAILABLE: u64 = 4 << 30;

/// Bytes that could be allocated now without swapping, within the limits of the control group.
pub(crate) fn available_memory() -> u64 {
    let system = field("/proc/meminfo", "MemAvailable:").unwrap_or(ASSUMED_AVAILABLE);
    group_memory().map_or(system, |group| group.min(system))
}

/// Bytes in memory now, if the system tells.
pub(crate) fn resident_memory() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// The most bytes that were ever in memory at once, if the system tells.
pub(crate) fn peak_memory() -> Option<u64> {
    // The system counts both in batches: the peak it tells may lag a few pages behind what is there now.
    field("/proc/self/status", "VmHWM:").max(resident_memory())
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_holds_something_and_less_than_its_peak() {
        let (now, peak) = (resident_memory(), peak_memory());
        assert!(now.is_some_and(|b| b > 100_000), "{now:?}");
        // Between the two looks other tests may have given memory back, and counts lag by some pages.
        let lag = 4 << 20;
        assert!(peak.map(|b| b + lag) >= now, "{peak:?} {now:?}");
        assert!(available_memory() > 1 << 20);
    }
}
