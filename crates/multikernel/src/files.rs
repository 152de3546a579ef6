//! A file that is there whole or not at all.
//!
//! It is written under a temporary name beside its goal and renamed at the end. What a link points to is replaced, not
//! the link; the new file may be read by whom the old one could be. A pipe or a device cannot be replaced: it is written
//! straight into.

use crate::error::{Error, Result};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Links that lead to links, at most; systems give up there too.
const MOST_LINKS: usize = 40;

/// Takes the bytes of a file; [`WholeFile::finish`] gives it its name, and without that nothing is left of it.
#[derive(Debug)]
pub struct WholeFile {
    /// As the user wrote it.
    given: PathBuf,
    /// Where links lead.
    goal: PathBuf,
    /// `None` where the goal itself is written.
    temporary: Option<PathBuf>,
    /// `None` once it is in place.
    out: Option<BufWriter<File>>,
}

impl WholeFile {
    /// Begins a file; its folder must exist.
    pub fn create(path: impl AsRef<Path>) -> Result<WholeFile> {
        let given = path.as_ref().to_path_buf();
        let failed = |e| Error::io(&given, e);
        let old = fs::metadata(&given).ok();
        let (goal, temporary, file) = if old.as_ref().is_some_and(|old| is_special(&given, old)) {
            let file = File::options().append(true).open(&given).map_err(failed)?;
            (given.clone(), None, file)
        } else {
            let goal = followed(&given);
            let temporary = temporary_name(&goal)?;
            let file = File::create(&temporary).map_err(failed)?;
            if let Some(old) = &old {
                keep_rights(&temporary, old);
            }
            (goal, Some(temporary), file)
        };
        Ok(WholeFile {
            given,
            goal,
            temporary,
            out: Some(BufWriter::with_capacity(1 << 20, file)),
        })
    }

    /// Whether it is a pipe or a device: what was written there cannot be taken back, or written over.
    pub fn is_special(&self) -> bool {
        self.temporary.is_none()
    }

    /// Gives the file its name; an older one of that name is replaced.
    pub fn finish(mut self) -> Result<()> {
        let Some(out) = self.out.take() else {
            return Ok(());
        };
        let file = out.into_inner().map_err(|e| e.into_error());
        let done = match self.temporary.take() {
            // Pipes have no place to be synchronised with.
            None => file.map(drop),
            Some(temporary) => file
                .and_then(|file| file.sync_all())
                .and_then(|()| fs::rename(&temporary, &self.goal))
                .inspect_err(|_| remove(&temporary)),
        };
        done.map_err(|e| Error::io(&self.given, e))
    }

    fn out(&mut self) -> io::Result<&mut BufWriter<File>> {
        self.out
            .as_mut()
            .ok_or_else(|| io::Error::other("the file is already complete"))
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out()?.flush()
    }
}

impl Seek for WholeFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.out()?.seek(to)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let (Some(out), Some(temporary)) = (self.out.take(), self.temporary.take()) {
            // Closed before it is removed; what is still in the buffer need not be written.
            drop(out.into_parts());
            remove(&temporary);
        }
    }
}

/// Writes a whole file in one go; an older one of that name is replaced only by a complete new one.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = WholeFile::create(path)?;
    file.write_all(bytes).map_err(|e| Error::io(path, e))?;
    file.finish()
}

/// Says in a sentence why nothing could be written to this path, for callers who would rather know before their work
/// than after it.
pub fn check_writable(path: impl AsRef<Path>) -> Result<()> {
    let given = path.as_ref();
    let wrong =
        |found: String, remedy: &str| Err(Error::input(given.display().to_string(), found, remedy));
    match fs::metadata(given) {
        Ok(old) if old.is_dir() => {
            return wrong("this is a folder".into(), "give the name of a file");
        }
        Ok(old) if is_special(given, &old) => return Ok(()),
        _ => {}
    }
    let goal = followed(given);
    let folder = goal.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return match folder.exists() {
            true => wrong(
                format!("{} is no folder but a file", folder.display()),
                "write elsewhere",
            ),
            false => wrong(
                format!("there is no folder {}", folder.display()),
                "make it, or write elsewhere",
            ),
        };
    }
    let temporary = temporary_name(&goal)?;
    match File::create(&temporary) {
        Ok(_) => {
            remove(&temporary);
            Ok(())
        }
        Err(e) => wrong(
            format!(
                "no file can be made in the folder {} ({e})",
                folder.display()
            ),
            "change its rights, or write elsewhere",
        ),
    }
}

/// Whether something is to be written straight into: a pipe, a device, or what somebody holds open (`/dev/stdout`).
fn is_special(path: &Path, old: &Metadata) -> bool {
    let held_open = cfg!(unix) && (path.starts_with("/dev") || path.starts_with("/proc"));
    !old.is_dir() && (!old.is_file() || held_open)
}

/// Where the links lead that begin here, whether there is something or not.
pub fn followed(path: &Path) -> PathBuf {
    let mut goal = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&goal) else {
            break;
        };
        goal = match goal.parent() {
            Some(folder) => folder.join(next),
            None => next,
        };
    }
    goal
}

/// The new file is for whom the old one was. Failing leaves it as new files are, which is no reason to write nothing.
fn keep_rights(new: &Path, old: &Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, chown};
        let _ = chown(new, Some(old.uid()), Some(old.gid()));
    }
    let _ = fs::set_permissions(new, old.permissions());
}

/// Removes a temporary file, as well as it goes.
pub fn remove(path: &Path) {
    // The error that brought us here is the one to tell; a failing clean-up adds nothing.
    if path.is_dir() {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// A hidden name in the same folder, of this process and this call only.
pub fn temporary_name(goal: &Path) -> Result<PathBuf> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let Some(name) = goal.file_name() else {
        return Err(Error::input(
            goal.display().to_string(),
            "this is no name for a file",
            "give the name of a file or a folder",
        ));
    };
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    Ok(goal.with_file_name(format!(
        ".{}.{}-{number}.tmp",
        name.to_string_lossy(),
        std::process::id()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn half_a_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        replace_file(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        let said = |path: &Path| check_writable(path).unwrap_err().to_string();
        fs::write(dir.path().join("file"), "x").unwrap();
        check_writable(dir.path().join("file")).unwrap();
        check_writable(dir.path().join("new")).unwrap();
        assert!(said(dir.path()).contains("this is a folder"));
        let none = said(&dir.path().join("none/x.mk"));
        assert!(none.contains("none/x.mk: there is no folder"), "{none}");
        let under = said(&dir.path().join("file/x.mk"));
        assert!(under.contains("is no folder but a file"), "{under}");
        assert_eq!(names(dir.path()), ["file"], "looking leaves nothing");
        assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"x");
        // Not even root makes files there.
        #[cfg(target_os = "linux")]
        {
            let refused = said(Path::new("/proc/x.mk"));
            assert!(
                refused.contains("/proc/x.mk: no file can be made in the folder /proc ("),
                "{refused}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_their_goal_changes() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("far")).unwrap();
        fs::write(at("far/goal"), "old").unwrap();
        symlink("far/goal", at("link")).unwrap();
        symlink("link", at("second")).unwrap();
        symlink("far/later", at("dangling")).unwrap();
        replace_file(&at("second"), b"new").unwrap();
        replace_file(&at("dangling"), b"first").unwrap();
        assert_eq!(fs::read(at("far/goal")).unwrap(), b"new");
        assert_eq!(fs::read(at("far/later")).unwrap(), b"first");
        for link in ["link", "second", "dangling"] {
            assert!(fs::symlink_metadata(at(link)).unwrap().is_symlink());
        }
        assert_eq!(names(&at("far")), ["goal", "later"]);
        check_writable(at("dangling")).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_rights() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace_file(&path, b"new").unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_written_into() {
        use std::os::unix::fs::FileTypeExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if !made.is_ok_and(|status| status.success()) {
            return;
        }
        check_writable(&path).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).unwrap()
        });
        replace_file(&path, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
        assert_eq!(names(dir.path()), ["pipe"]);
    }
}
