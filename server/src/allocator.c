/* How the system's allocator keeps memory. It has to be told before the first thread begins, and
 * Rust has no safe way to tell it. */

#include <malloc.h>
#include <unistd.h>

__attribute__((constructor)) static void settle(void) {
    /* Each arena keeps what it once needed, and by default there are eight for each core: threads
     * for blocking work and for connections to the database come and go in all of them. */
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    mallopt(M_ARENA_MAX, cores < 2 ? 2 : cores > 4 ? 4 : (int)cores);
    /* Encoded lists of a long history are given back as soon as they are let go. Without this the
     * bound grows with the largest one, and the next is taken from an arena. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 128 * 1024);
}
