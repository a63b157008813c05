//! A clock that is set under one program (H93).

use super::{World, shim};
use std::fs;
use std::path::{Path, PathBuf};

/// Shifts the time of day and the time since boot by offsets from a file.
/// The monotonic clock, which deadlines use, is unchanged. A clock that was set moves the time of
/// day alone, a machine that slept moves both.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long offset(int since_boot) {
    char text[64] = {0};
    const char *path = getenv("CLOCK_OFFSET_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return 0;
    char *next = text;
    long of_day = strtol(text, &next, 10);
    return since_boot ? strtol(next, NULL, 10) : of_day;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, clock, now);
    if (done != 0) return done;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += offset(0);
    if (clock == CLOCK_BOOTTIME) now->tv_sec += offset(1);
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
        let library = shim::compile(world, "clock", SHIM);
        let clock = Self { library, offset: world.root.join("offset") };
        clock.set(0);
        clock
    }

    /// Seconds from the true time of day.
    pub fn set(&self, seconds: i64) {
        self.write(seconds, 0);
    }

    /// The machine slept so many seconds; nothing has run meanwhile.
    pub fn sleep(&self, seconds: i64) {
        self.write(seconds, seconds);
    }

    fn write(&self, of_day: i64, since_boot: i64) {
        let next = self.offset.with_extension("next");
        fs::write(&next, format!("{of_day} {since_boot}")).unwrap();
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
