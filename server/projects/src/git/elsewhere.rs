//! Whether git would write into another repository (H41).
//!
//! A project is content of somebody else. Its `.git` may be a file, a link or a directory with links
//! in it, and each may lead into another repository, where a launch with a worktree would then
//! write. So every way out has to be answered from the other side: a worktree by the repository's
//! pointer back to it, a submodule by the `core.worktree` of its own directory.

use super::read_bounded;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Most bytes of a configuration file, and most files that include one another.
const CONFIG: usize = 256 * 1024;
const INCLUDED: usize = 16;

/// Names in a repository's directory that making a worktree writes below.
const WRITTEN: [&str; 12] = [
    "HEAD",
    "config",
    "config.worktree",
    "index",
    "info",
    "logs",
    "logs/refs",
    "logs/refs/heads",
    "objects",
    "packed-refs",
    "refs",
    "worktrees",
];
/// Directories whose entries may not be links to another place either.
const LISTED: [&str; 7] =
    ["logs", "logs/refs", "logs/refs/heads", "objects", "refs", "refs/heads", "worktrees"];
/// Most entries of one of those.
/// With more of them no worktree is made.
const ENTRIES: usize = 10_000;

/// Where the agent makes worktrees below the project (agent 2.1.197).
const PLACES: [&str; 2] = [".claude", ".claude/worktrees"];

/// What leads out of the repository at `root`, or out of the project in it.
pub(crate) fn leads_elsewhere(root: &Path, project: &Path) -> Option<String> {
    let lead = place_leads_out(project).or_else(|| {
        let root = root.canonicalize().ok()?;
        match repository(&root) {
            Ok(repository) => repository.leads_out(&root),
            Err(lead) => Some(lead),
        }
    });
    lead.map(|lead| format!("{lead} leads to another place"))
}

fn place_leads_out(project: &Path) -> Option<String> {
    let project = project.canonicalize().ok()?;
    let is_out = |name: &&&str| leads_out(&project.join(name), &project);
    PLACES.iter().find(is_out).map(|name| format!("its `{name}`")).or_else(|| {
        let place = ".claude/worktrees";
        entry_leads_out(&project.join(place), &project, place)
    })
}

/// A repository whose directories belong to the checkout at its root.
struct Repository {
    own: PathBuf,
    common: PathBuf,
    /// It is one of several checkouts.
    /// The others are not asked for their configuration.
    is_linked: bool,
}

/// Follows `.git`, and demands the way back.
fn repository(root: &Path) -> Result<Repository, String> {
    let dot_git = root.join(".git");
    let facts = dot_git.symlink_metadata().map_err(|_| "its `.git`".to_owned())?;
    let own = match () {
        () if facts.is_dir() => dot_git.clone(),
        // A link stays inside, or it is somebody else's.
        () if facts.is_symlink() => {
            let real = real(&dot_git).filter(|real| real.starts_with(root) && real.is_dir());
            real.ok_or("its `.git`")?
        }
        () => {
            let line = super::read_line(&dot_git).ok_or("its `.git`")?;
            let named = line.strip_prefix("gitdir:").ok_or("its `.git`")?.trim();
            real(&root.join(named)).ok_or("its `.git`")?
        }
    };
    let common = match super::read_line(&own.join("commondir")) {
        Some(line) => real(&own.join(line)).ok_or("its `commondir`")?,
        None => own.clone(),
    };
    let is_linked = common != own;
    if is_linked {
        let is_listed = own.parent() == Some(&common.join("worktrees"));
        let back = super::read_line(&own.join("gitdir")).and_then(|line| real(&own.join(line)));
        if !is_listed || back.as_deref() != Some(&dot_git) || !facts.is_file() {
            return Err("its `.git`".to_owned());
        }
    } else if !own.starts_with(root) {
        // A submodule: its directory names the checkout.
        let named = Settings::of(&own).worktrees;
        let is_back = |named: &PathBuf| real(named).as_deref() == Some(root);
        if named.is_empty() || !named.iter().all(is_back) {
            return Err("its `.git`".to_owned());
        }
    }
    Ok(Repository { own, common, is_linked })
}

impl Repository {
    fn leads_out(&self, root: &Path) -> Option<String> {
        let links = |dir: &Path| {
            let out = |name: &&str| leads_out(&dir.join(name), dir);
            WRITTEN.into_iter().find(out).map(|name| format!("its `.git/{name}`"))
        };
        let listed = |dir: &Path| {
            LISTED
                .into_iter()
                .find_map(|name| entry_leads_out(&dir.join(name), dir, &format!(".git/{name}")))
        };
        let of = |dir: &Path| links(dir).or_else(|| listed(dir));
        let of_common = || if self.is_linked { of(&self.common) } else { None };
        of(&self.own).or_else(of_common).or_else(|| {
            // The configuration of a repository with several checkouts is that of the first.
            let settings = if self.is_linked {
                Settings::of_worktree(&self.own)
            } else {
                Settings::of(&self.own)
            };
            let is_here = |named: &PathBuf| real(named).as_deref() == Some(root);
            if !settings.worktrees.iter().all(is_here) {
                return Some("its `core.worktree`".to_owned());
            }
            let unread = "its git configuration, part of which could not be read, perhaps";
            settings.is_unread.then(|| unread.to_owned())
        })
    }
}

/// Whether something is a link that ends outside `inside`.
fn leads_out(path: &Path, inside: &Path) -> bool {
    let is_link = path.symlink_metadata().as_ref().is_ok_and(Metadata::is_symlink);
    is_link && !real(path).is_some_and(|real| real.starts_with(inside))
}

/// Which entry of a directory called `name` leads out of `inside`, or may.
fn entry_leads_out(dir: &Path, inside: &Path, name: &str) -> Option<String> {
    let entries = match dir.read_dir() {
        Ok(entries) => entries,
        Err(error) if is_missing(&error) => return None,
        Err(_) => {
            return Some(format!("something in its `{name}`, which is not readable, perhaps"));
        }
    };
    for (number, entry) in entries.enumerate() {
        if number == ENTRIES {
            return Some(format!("one of the more than {ENTRIES} entries of its `{name}` perhaps"));
        }
        let is_out = match entry {
            Ok(entry) => leads_out(&entry.path(), inside),
            Err(_) => true,
        };
        if is_out {
            return Some(format!("something in its `{name}`"));
        }
    }
    None
}

/// Whether there is no such file: git passes over it then.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// What the configuration of a repository says about its checkout.
#[derive(Default)]
struct Settings {
    /// Every `core.worktree` that may count.
    worktrees: Vec<PathBuf>,
    /// What some file says is not known.
    /// It was too large, could not be read or understood, or there were too many.
    is_unread: bool,
    read: usize,
}

impl Settings {
    fn of(own: &Path) -> Self {
        let mut settings = Self::of_worktree(own);
        settings.read_file(&own.join("config"), own);
        settings
    }

    fn of_worktree(own: &Path) -> Self {
        let mut settings = Self::default();
        settings.read_file(&own.join("config.worktree"), own);
        settings
    }

    /// Reads a file and those that it includes, whether their condition holds or not.
    fn read_file(&mut self, file: &Path, own: &Path) {
        self.read += 1;
        if self.read > INCLUDED {
            self.is_unread = true;
            return;
        }
        let content = match read_bounded(file, CONFIG) {
            Ok(Some(content)) => content,
            Err(error) if is_missing(&error) => return,
            Ok(None) | Err(_) => {
                self.is_unread = true;
                return;
            }
        };
        let Some(found) = settings(&content) else {
            self.is_unread = true;
            return;
        };
        for setting in found {
            match setting {
                Setting::Worktree(named) => self.worktrees.push(own.join(named)),
                Setting::Include(named) => match included(&named, file) {
                    Some(other) => self.read_file(&other, own),
                    None => self.is_unread = true,
                },
            }
        }
    }
}

/// The file that another one includes.
///
/// `None` where only git knows.
fn included(named: &Path, by: &Path) -> Option<PathBuf> {
    if let Ok(rest) = named.strip_prefix("~") {
        return Some(std::env::home_dir()?.join(rest));
    }
    // The home of another user, git's own directory, and words of later versions.
    let bytes = named.as_os_str().as_encoded_bytes();
    if [b"~".as_slice(), b"%(", b":("].iter().any(|special| bytes.starts_with(special)) {
        return None;
    }
    Some(by.parent()?.join(named))
}

/// What matters of a configuration.
#[derive(Debug, PartialEq, Eq)]
enum Setting {
    Worktree(PathBuf),
    Include(PathBuf),
}

/// Reads a configuration as git does.
///
/// `None` if anything in it is not understood.
fn settings(content: &[u8]) -> Option<Vec<Setting>> {
    // For git a name or a value ends there.
    if content.contains(&0) {
        return None;
    }
    let mut text = Text(content.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(content));
    let (mut found, mut section) = (Vec::new(), Section::Other);
    while let Some(byte) = text.byte() {
        match byte {
            b'#' | b';' => text.end_line(),
            b'[' => section = text.header()?,
            blank if is_blank(blank) => {}
            first if first.is_ascii_alphabetic() => {
                let (key, value) = text.variable(first)?;
                match (section, key.as_slice()) {
                    (Section::Core, b"worktree") => found.push(Setting::Worktree(path(value?)?)),
                    (Section::Include, b"path") => found.push(Setting::Include(path(value?)?)),
                    _ => {}
                }
            }
            _ => return None,
        }
    }
    Some(found)
}

/// A path, unless versions of git differ in how they read it.
/// A tab in it is one thing to some and another to others.
fn path(value: Vec<u8>) -> Option<PathBuf> {
    let is_plain = !value.iter().any(u8::is_ascii_control);
    is_plain.then(|| PathBuf::from(OsString::from_vec(value)))
}

#[derive(Clone, Copy)]
enum Section {
    Core,
    Include,
    Other,
}

/// What is left of a configuration.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    /// The next byte.
    /// The end of a line may be that of Windows.
    fn byte(&mut self) -> Option<u8> {
        if let Some(rest) = self.0.strip_prefix(b"\r\n") {
            self.0 = rest;
            return Some(b'\n');
        }
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next byte, or the end of a line at the end of the file.
    fn or_end(&mut self) -> u8 {
        self.byte().unwrap_or(b'\n')
    }

    /// The next byte if the line goes on.
    fn in_line(&mut self) -> Option<u8> {
        self.byte().filter(|byte| *byte != b'\n')
    }

    fn end_line(&mut self) {
        while self.in_line().is_some() {}
    }

    /// What follows the `[` of a section, up to its `]`.
    fn header(&mut self) -> Option<Section> {
        let mut name = Vec::new();
        loop {
            match self.in_line()? {
                b']' => break,
                blank if is_blank(blank) => {
                    name.push(b'.');
                    self.subsection()?;
                    break;
                }
                byte if is_of_name(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
        Some(match name.as_slice() {
            b"core" => Section::Core,
            b"include" => Section::Include,
            // Whether the condition holds or not.
            name if name.starts_with(b"includeif.") => Section::Include,
            _ => Section::Other,
        })
    }

    /// A name in quotes, and the `]` behind it.
    fn subsection(&mut self) -> Option<()> {
        let mut byte = self.in_line()?;
        while is_blank(byte) {
            byte = self.in_line()?;
        }
        if byte != b'"' {
            return None;
        }
        loop {
            match self.in_line()? {
                b'"' => break,
                b'\\' => {
                    self.in_line()?;
                }
                _ => {}
            }
        }
        (self.in_line()? == b']').then_some(())
    }

    /// A variable's name, and its value if it has one.
    fn variable(&mut self, first: u8) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let mut name = vec![first.to_ascii_lowercase()];
        let mut byte = self.or_end();
        while is_of_name(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.or_end();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.or_end();
        }
        match byte {
            b'\n' => Some((name, None)),
            b'=' => Some((name, Some(self.value()?))),
            _ => None,
        }
    }

    /// A value without its quotes, its comment and the blanks around it.
    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut is_quoted) = (Vec::new(), false);
        // Where the blanks at its end begin.
        let mut end = 0;
        loop {
            match self.or_end() {
                b'\n' if is_quoted => return None,
                b'\n' => break,
                blank if is_blank(blank) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(blank);
                    }
                    continue;
                }
                b'#' | b';' if !is_quoted => {
                    self.end_line();
                    break;
                }
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.or_end() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'n' => value.push(b'\n'),
                    b'b' => value.push(8),
                    same @ (b'\\' | b'"') => value.push(same),
                    _ => return None,
                },
                byte => value.push(byte),
            }
            end = value.len();
        }
        value.truncate(end);
        Some(value)
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checkouts that a configuration names.
    fn worktrees(content: &str) -> Option<Vec<String>> {
        let named = settings(content.as_bytes())?.into_iter().map(|setting| match setting {
            Setting::Worktree(path) => path.to_str().unwrap().to_owned(),
            Setting::Include(path) => format!("include {}", path.display()),
        });
        Some(named.collect())
    }

    #[test]
    fn a_value_is_read_as_git_reads_it() {
        for (raw, value) in [
            (" \"/a b\" ; more", "/a b"),
            ("/a\\\\b # more", "/a\\b"),
            ("\"/a # b\"", "/a # b"),
            ("/a  b \t", "/a  b"),
            ("\"/a \" ", "/a "),
            ("/a\\\n/b", "/a/b"),
            ("/a\\\r\n/b\r", "/a/b"),
            ("/a\\", "/a"),
        ] {
            let read = worktrees(&format!("[core] worktree = {raw}"));
            assert_eq!(read, Some(vec![value.to_owned()]), "{raw:?}");
        }
    }

    #[test]
    fn a_setting_is_found_wherever_git_finds_it() {
        for content in [
            "[core] worktree = /a ;]\n",
            "\u{feff}[core]\nworktree=/a\n",
            "[core]\r\n\tworktree = /a\r\n",
            "[x]y=z\n[CORE]WorkTree=/a",
            "[x] [core] worktree=/a",
            "[x \"]\\\"[\"] [core] worktree=/a",
            "[core] # it goes on \\\nworktree=/a",
            "[core] bare\nworktree=/a",
        ] {
            assert_eq!(worktrees(content), Some(vec!["/a".to_owned()]), "{content:?}");
        }
        for content in ["[include] path = a ;]\n", "[includeIf \"gitdir:[]]\"] path=a ;]"] {
            assert_eq!(worktrees(content), Some(vec!["include a".to_owned()]), "{content:?}");
        }
        for content in
            ["", "[core \"x\"] worktree=/a", "# [core]\nworktree=/a", "[core.x]worktree=/a"]
        {
            assert_eq!(worktrees(content), Some(Vec::new()), "{content:?}");
        }
    }

    #[test]
    fn what_git_would_not_read_is_not_passed_over() {
        for content in [
            "[core",
            "[core\n]",
            "[core x]",
            "[core \"x\" ]",
            "[core \"x\n\"]",
            "[core \"worktree\0\"] x=/a",
            "\u{feff}\u{feff}[core]",
            "[core]\n=/a",
            "[core]\nwork tree=/a",
            "[core]\nworktree",
            "[core]\nworktree=\"/a",
            "[core]\nworktree=/a\\c",
            "[core]\nworktree=/a\tb",
        ] {
            assert_eq!(worktrees(content), None, "{content:?}");
        }
    }

    #[test]
    fn an_included_file_is_found_or_said_to_be_unknown() {
        let by = Path::new("/r/.git/config");
        assert_eq!(included(Path::new("../more"), by), Some("/r/.git/../more".into()));
        assert_eq!(included(Path::new("/more"), by), Some("/more".into()));
        for named in ["~other/more", "%(prefix)/more", ":(optional)more"] {
            assert_eq!(included(Path::new(named), by), None, "{named}");
        }
    }

    #[test]
    fn a_directory_with_too_many_entries_is_not_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().canonicalize().unwrap();
        for number in 0..ENTRIES {
            std::fs::write(inside.join(number.to_string()), "").unwrap();
        }
        assert_eq!(entry_leads_out(&inside, &inside, "x"), None);
        std::fs::write(inside.join("more"), "").unwrap();
        assert!(entry_leads_out(&inside, &inside, "x").unwrap().contains("more than"));
        assert_eq!(entry_leads_out(&inside.join("none"), &inside, "x"), None);
    }
}
