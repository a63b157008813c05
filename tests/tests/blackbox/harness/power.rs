//! A power cut: of the database only what was synced is left (H101).

use super::{World, shim};
use std::fs;
use std::path::{Path, PathBuf};

/// Copies each database file whenever it is synced.
/// A sync returns only after its copy is whole.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static void keep(int file) {
    char link[64], path[PATH_MAX], copy[PATH_MAX], next[PATH_MAX], block[65536];
    const char *dir = getenv("SYNCED_DIR");
    if (!dir) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    if (!name || strncmp(name, "/svc.db", 7) != 0) return;
    if (snprintf(copy, sizeof copy, "%s%s", dir, name) >= (int)sizeof copy - 8) return;
    snprintf(next, sizeof next, "%s.next", copy);
    pthread_mutex_lock(&one);
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ssize_t got = 0;
    while (from >= 0 && to >= 0 && (got = read(from, block, sizeof block)) > 0)
        if (write(to, block, got) != got) abort();
    if (from >= 0) close(from);
    if (to >= 0) close(to);
    rename(next, copy);
    pthread_mutex_unlock(&one);
}
int fsync(int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    int done = real(file);
    if (done == 0) keep(file);
    return done;
}
int fdatasync(int file) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    int done = real(file);
    if (done == 0) keep(file);
    return done;
}
"#;

/// The disk of a service whose power can be cut.
pub struct Power {
    library: PathBuf,
    synced: PathBuf,
}

impl Power {
    pub fn new(world: &World) -> Self {
        let synced = world.root.join("synced");
        fs::create_dir(&synced).unwrap();
        Self { library: shim::compile(world, "power", SHIM), synced }
    }

    /// What makes a program write to this disk.
    pub fn env(&self) -> [(&'static str, &str); 2] {
        fn text(path: &Path) -> &str {
            path.to_str().unwrap()
        }
        [("LD_PRELOAD", text(&self.library)), ("SYNCED_DIR", text(&self.synced))]
    }

    /// Puts each database file back to its last sync.
    /// No process may have the files open.
    pub fn cut(&self, world: &World) {
        let is_kept = |name: &str| self.synced.join(name).exists();
        assert!(is_kept("svc.db") || is_kept("svc.db-wal"), "nothing was synced at all");
        for name in ["svc.db", "svc.db-wal"] {
            let (own, kept) = (world.state.join(name), self.synced.join(name));
            if kept.exists() {
                fs::copy(&kept, &own).unwrap();
            } else if name == "svc.db-wal" {
                let _ = fs::remove_file(own); // never synced: never there
            }
        }
        let _ = fs::remove_file(world.state.join("svc.db-shm")); // it lives in memory
    }
}
