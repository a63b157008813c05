//! The route prefix behind a reverse proxy (`http-api` §0.1).

/// The configured `root_path`: empty, or `/…` without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RootPath(String);

impl RootPath {
    /// Reads the configured text; slashes at its ends make no difference.
    #[must_use]
    pub fn new(configured: &str) -> Self {
        match configured.trim_matches('/') {
            "" => Self::default(),
            inner => Self(format!("/{inner}")),
        }
    }

    /// The prefix as it stands in links; empty without one.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The app-local path of a request, which every guard and the router classify.
    ///
    /// A proxy may have taken the prefix off or not. It comes off once, and only as whole
    /// segments: `/prefixfoo` is not below `/prefix`. `path` is as received, still encoded.
    #[must_use]
    pub fn strip<'p>(&self, path: &'p str) -> &'p str {
        match path.strip_prefix(self.0.as_str()) {
            Some("") => "/",
            Some(local) if local.starts_with('/') => local,
            Some(_) | None => path,
        }
    }

    /// The address of an app-local path, for links and redirects.
    #[must_use]
    pub fn join(&self, local: &str) -> String {
        format!("{}{local}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(root: &str, path: &str, local: &str) {
        assert_eq!(RootPath::new(root).strip(path), local, "{path} below {root:?}");
    }

    #[test]
    fn the_prefix_comes_off_at_segment_boundaries_only() {
        for root in ["/svc", "/svc/", "svc", "svc//"] {
            check(root, "/svc", "/");
            check(root, "/svc/", "/");
            check(root, "/svc/api/projects", "/api/projects");
            check(root, "/svcfoo", "/svcfoo");
            check(root, "/api/svc", "/api/svc");
            check(root, "/SVC/api", "/SVC/api");
            check(root, "/%73vc/api", "/%73vc/api");
        }
        check("/a/b", "/a/b/healthz", "/healthz");
        check("/a/b", "/a/healthz", "/a/healthz");
    }

    #[test]
    fn a_proxy_that_strips_the_prefix_itself_works_too() {
        check("/svc", "/healthz", "/healthz");
        check("/svc", "/", "/");
    }

    #[test]
    fn the_prefix_comes_off_once_and_slashes_are_not_normalised() {
        check("/svc", "/svc/svc", "/svc");
        check("/svc", "/svc//api", "//api");
        check("/svc", "//svc/api", "//svc/api");
    }

    #[test]
    fn without_a_prefix_a_path_is_left_as_it_is() {
        for root in ["", "/"] {
            check(root, "/api", "/api");
            check(root, "", "/");
            check(root, "*", "*");
        }
        assert_eq!(RootPath::new("/").join("/login"), "/login");
        assert_eq!(RootPath::new("svc/").join("/login"), "/svc/login");
    }
}
