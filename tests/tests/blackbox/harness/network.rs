//! What a program asks of the network (H53).

use super::{World, shim};
use std::fs;
use std::path::PathBuf;

/// Records every outgoing connection and every name that is looked up.
/// Tests and service use loopback and local sockets, so those are not recorded.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static void note(const char *what, const char *whom) {
    char line[512];
    const char *path = getenv("NETWORK_LOG");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file < 0) return;
    int length = snprintf(line, sizeof line, "%s %s\n", what, whom);
    if (write(file, line, length) != length) abort();
    close(file);
}
static void about(const char *what, const struct sockaddr *to) {
    char text[INET6_ADDRSTRLEN] = "";
    if (!to) return;
    if (to->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)to;
        if ((ntohl(in->sin_addr.s_addr) >> 24) == 127) return;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    } else if (to->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)to;
        if (IN6_IS_ADDR_LOOPBACK(&in->sin6_addr)) return;
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
    } else {
        return;
    }
    note(what, text);
}
int connect(int socket, const struct sockaddr *to, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    about("connects to", to);
    return real(socket, to, length);
}
ssize_t sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "sendto");
    about("sends to", to);
    return real(socket, data, size, flags, to, length);
}
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && strcmp(node, "localhost") != 0 && node[0] != '1' && node[0] != ':') note("looks up", node);
    return real(node, service, hints, found);
}
"#;

/// A network that remembers what was asked of it.
pub struct Network {
    library: PathBuf,
    log: PathBuf,
}

impl Network {
    pub fn watched(world: &World) -> Self {
        let log = world.root.join("network.log");
        Self { library: shim::compile(world, "network", SHIM), log }
    }

    /// What puts a program on this network.
    pub fn env(&self) -> [(&'static str, &str); 2] {
        [
            ("LD_PRELOAD", self.library.to_str().unwrap()),
            ("NETWORK_LOG", self.log.to_str().unwrap()),
        ]
    }

    /// Everything that was asked for so far.
    pub fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }
}
