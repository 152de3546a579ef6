//! What this machine and this process have in memory. Known on Linux; elsewhere honestly unknown.

use std::fs;

/// Assumed where the system does not tell.
const ASSUMED_AVAILABLE: u64 = 4 << 30;

/// Bytes that could be allocated now without swapping, within the limits of the control group.
pub fn available_memory() -> u64 {
    let system = field("/proc/meminfo", "MemAvailable:").unwrap_or(ASSUMED_AVAILABLE);
    group_memory().map_or(system, |group| group.min(system))
}

/// What is taken of the available memory where nobody says how much may be: three quarters.
pub fn memory_to_use() -> u64 {
    available_memory() / 4 * 3
}

/// Bytes in memory now, if the system tells.
pub fn resident_memory() -> Option<u64> {
    field("/proc/self/status", "VmRSS:")
}

/// The most bytes that were ever in memory at once, if the system tells.
pub fn peak_memory() -> Option<u64> {
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
    fn what_this_process_holds_is_counted_now_and_in_its_peak() {
        const HELD: u64 = 64 << 20;
        let held = std::hint::black_box(vec![1u8; HELD as usize]);
        let (now, peak) = (resident_memory(), peak_memory());
        assert!(now.is_some_and(|b| b >= HELD), "{now:?}");
        assert!(peak.is_some_and(|b| b >= HELD), "{peak:?}");
        drop(held);
        let (later, peak) = (resident_memory(), peak_memory());
        assert!(peak.is_some_and(|b| b >= HELD), "{peak:?}");
        assert!(peak > later, "{peak:?} {later:?}");
        assert!(available_memory() > 1 << 20);
    }
}
