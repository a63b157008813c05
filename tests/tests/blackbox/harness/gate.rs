//! A file system that hangs while a gate is closed (H85).

use super::{World, shim};
use std::fs;
use std::path::PathBuf;

/// Delays file calls below the directories of `GATED` while the file `GATE` exists.
/// Each delayed call appends a byte to `GATE.waiting`.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>
static void wait_for(const char *path) {
    char waiting[PATH_MAX];
    const char *gate = getenv("GATE"), *all = getenv("GATED");
    if (!gate || !all || !path || path[0] != '/') return;
    int below = 0;
    for (const char *one = all; *one;) {
        size_t length = strcspn(one, ":");
        if (length && strncmp(path, one, length) == 0) below = 1;
        one += length + (one[length] == ':');
    }
    if (!below || syscall(SYS_access, gate, F_OK) != 0) return;
    snprintf(waiting, sizeof waiting, "%s.waiting", gate);
    int file = syscall(SYS_open, waiting, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        syscall(SYS_write, file, "x", 1);
        syscall(SYS_close, file);
    }
    while (syscall(SYS_access, gate, F_OK) == 0) usleep(2000);
}
static void wait_for_file(int file) {
    char link[64], path[PATH_MAX];
    if (!getenv("GATE")) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    wait_for(path);
}
#define REAL(name) (dlsym(RTLD_NEXT, name))
static int mode_of(int flags, va_list more) {
    return (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, int) : 0;
}
#define OPEN(name) \
int name(const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); int mode = mode_of(flags, more); va_end(more); \
    int (*real)(const char *, int, ...) = REAL(#name); \
    wait_for(path); \
    return real(path, flags, mode); \
}
OPEN(open)
OPEN(open64)
#define OPENAT(name) \
int name(int dir, const char *path, int flags, ...) { \
    va_list more; va_start(more, flags); int mode = mode_of(flags, more); va_end(more); \
    int (*real)(int, const char *, int, ...) = REAL(#name); \
    wait_for(path); \
    return real(dir, path, flags, mode); \
}
OPENAT(openat)
OPENAT(openat64)
ssize_t read(int file, void *into, size_t most) {
    ssize_t (*real)(int, void *, size_t) = REAL("read");
    wait_for_file(file);
    return real(file, into, most);
}
DIR *opendir(const char *path) {
    DIR *(*real)(const char *) = REAL("opendir");
    wait_for(path);
    return real(path);
}
int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict out) {
    int (*real)(int, const char *, int, unsigned, struct statx *) = REAL("statx");
    wait_for(path);
    return real(dir, path, flags, mask, out);
}
ssize_t readlink(const char *restrict path, char *restrict into, size_t most) {
    ssize_t (*real)(const char *, char *, size_t) = REAL("readlink");
    wait_for(path);
    return real(path, into, most);
}
char *realpath(const char *restrict path, char *restrict into) {
    char *(*real)(const char *, char *) = REAL("realpath");
    wait_for(path);
    return real(path, into);
}
"#;

/// A gate in front of directories of a world.
pub struct Gate {
    library: PathBuf,
    gate: PathBuf,
    gated: String,
}

impl Gate {
    /// An open gate.
    pub fn before(world: &World, directories: &[PathBuf]) -> Self {
        let gated: Vec<_> = directories.iter().map(|dir| dir.to_str().unwrap()).collect();
        Self {
            library: shim::compile(world, "gate", SHIM),
            gate: world.root.join("gate"),
            gated: gated.join(":"),
        }
    }

    /// What puts a program behind the gate.
    pub fn env(&self) -> [(&'static str, &str); 3] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("GATE", self.gate.to_str().unwrap()),
            ("GATED", &self.gated),
        ]
    }

    pub fn close(&self) {
        fs::write(&self.gate, "").unwrap();
    }

    pub fn open(&self) {
        fs::remove_file(&self.gate).unwrap();
    }

    /// How many calls were delayed so far.
    pub fn waiting(&self) -> u64 {
        let file = self.gate.with_extension("waiting");
        fs::metadata(file).map_or(0, |meta| meta.len())
    }
}

/// After a failed test nothing stays delayed.
impl Drop for Gate {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.gate);
    }
}
