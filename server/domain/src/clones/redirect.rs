//! Where a server sends git to, read from git's trace of the transfer.
//!
//! Git does not follow redirects here (H47). Its trace names the target; each target is judged like
//! the first address before git is sent there.

/// The target of the redirect that ended a transfer, if one did.
///
/// `trace` is what `GIT_TRACE_CURL` writes (git 2.47): `<= Recv header: name: value`.
#[must_use]
pub fn target(trace: &str) -> Option<&str> {
    let mut is_redirect = false;
    let mut found = None;
    for line in trace.lines() {
        let Some((_, header)) = line.split_once("<= Recv header: ") else { continue };
        if header.starts_with("HTTP/") {
            let status = header.split_whitespace().nth(1).unwrap_or_default();
            is_redirect = matches!(status, "301" | "302" | "303" | "307" | "308");
            found = None;
        } else if is_redirect
            && let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("location")
        {
            found = Some(value.trim());
        }
    }
    found.filter(|_| is_redirect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h47_only_the_last_answer_says_where_to_go() {
        let trace = "\
10:00:00.1 http.c:915 <= Recv header: HTTP/1.1 200 Connection established
10:00:00.2 http.c:915 => Send header: GET /a/info/refs?service=git-upload-pack HTTP/2
10:00:00.3 http.c:915 <= Recv header: HTTP/2 301
10:00:00.3 http.c:915 <= Recv header: Location: https://b.example/a.git/info/refs
10:00:00.3 http.c:915 <= Recv header: content-length: 0
";
        assert_eq!(target(trace), Some("https://b.example/a.git/info/refs"));
        let ended = format!("{trace}x <= Recv header: HTTP/2 404\n");
        assert_eq!(target(&ended), None);
        assert_eq!(target("x <= Recv header: HTTP/2 200\nx <= Recv header: location: y\n"), None);
        assert_eq!(target(""), None);
    }
}
