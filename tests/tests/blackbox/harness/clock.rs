//! A clock that is set under one program (H93).

use super::World;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Shifts the time of day and the time since boot by offsets from a file.
/// The monotonic clock, which deadlines use, is unchanged. So it looks like a machine whose clock
/// was set, or which slept.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long offset(void) {
    char text[32] = {0};
    const char *path = getenv("CLOCK_OFFSET_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    return got > 0 ? atol(text) : 0;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, clock, now);
    if (done == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return done;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    tv->tv_sec = now.tv_sec;
    tv->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"#;

/// The time of day of one service, set from a test.
pub struct Clock {
    library: PathBuf,
    offset: PathBuf,
}

impl Clock {
    pub fn new(world: &World) -> Self {
        let source = world.root.join("clock.c");
        let library = world.root.join("clock.so");
        fs::write(&source, SHIM).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
        let done = compiler.output().expect("a C compiler, which the build needs too");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let clock = Self { library, offset: world.root.join("offset") };
        clock.set(0);
        clock
    }

    /// Seconds from the true time of day.
    pub fn set(&self, seconds: i64) {
        let next = self.offset.with_extension("next");
        fs::write(&next, seconds.to_string()).unwrap();
        fs::rename(next, &self.offset).unwrap();
    }

    /// What makes a program ask this clock.
    pub fn env(&self) -> [(&'static str, &str); 2] {
        fn text(path: &Path) -> &str {
            path.to_str().unwrap()
        }
        [("LD_PRELOAD", text(&self.library)), ("CLOCK_OFFSET_FILE", text(&self.offset))]
    }
}
