/* Settings of glibc's allocator. They must be made before the first thread starts, and safe Rust cannot
 * make them.
 *
 * Environment variables were tried instead (MALLOC_ARENA_MAX and the two thresholds). With 64
 * connections and 3,000 projects the service has 43 to 45 MiB either way, and 48 to 50 without
 * settings. But only a unit can set variables: a service that is started by hand would have to execute
 * itself again, which costs a start of the program (6 ms in a debug build), shows it as `exe` in lists
 * of processes, and makes agents inherit the variables, where they cannot be told from the user's own.
 * There is no crate for `mallopt` on crates.io. */

#include <malloc.h>
#include <unistd.h>

__attribute__((constructor)) static void set_limits(void) {
    /* Each arena keeps freed memory. By default there are eight arenas for each core, and the threads
     * for blocking work and for the database use all of them. */
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    mallopt(M_ARENA_MAX, cores < 2 ? 2 : cores > 4 ? 4 : (int)cores);
    /* Blocks above this size go back to the system when they are freed, such as the encoded lists of a
     * long history. Without a fixed threshold it grows with the largest freed block, and the next list
     * would come from an arena. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}
