//! Which request of the inbox is shown.

use svc_shared::paths::segment;

/// Value of the member that asks for answered requests.
pub const ANSWERED: &str = "answered";
/// Stands for no session in a path.
const NOBODY: &str = "-";

/// A request of the inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRef {
    /// The session that asks; `None` where nobody manages it.
    pub session: Option<String>,
    /// Name of the request.
    pub request: String,
}

impl RequestRef {
    /// Query member: open or answered ones.
    pub const STATE: &'static str = "state";
    /// Query member: the session that asks.
    pub const SESSION: &'static str = "session";
    /// Query member: name of the request.
    pub const REQUEST: &'static str = "request";

    /// The request that members of a query name.
    pub fn of(member: impl Fn(&str) -> String) -> Option<Self> {
        let request = Some(member(Self::REQUEST)).filter(|name| !name.is_empty())?;
        let session = Some(member(Self::SESSION)).filter(|id| !id.is_empty() && id != NOBODY);
        Some(Self { session, request })
    }

    /// Members of the query that name it.
    #[must_use]
    pub fn members(&self) -> [(&'static str, &str); 2] {
        [
            (Self::SESSION, self.session.as_deref().unwrap_or_default()),
            (Self::REQUEST, &self.request),
        ]
    }

    /// Its address on the page, without prefix.
    #[must_use]
    pub fn path(&self) -> String {
        let session = self.session.as_deref().unwrap_or(NOBODY);
        format!("/ui/inbox/{}/{}", segment(session), segment(&self.request))
    }

    /// Its address at the service.
    #[must_use]
    pub fn api_path(&self) -> String {
        let path = svc_shared::paths::approval(&self.request);
        match &self.session {
            Some(id) => format!("{path}?instance={}", segment(id)),
            None => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_an_address_with_and_without_a_session() {
        let of = |session: Option<&str>| RequestRef {
            session: session.map(str::to_owned),
            request: "a b".to_owned(),
        };
        assert_eq!(of(Some("i1")).path(), "/ui/inbox/i1/a%20b");
        assert_eq!(of(None).path(), "/ui/inbox/-/a%20b");
        assert_eq!(of(Some("i1")).api_path(), "/api/approvals/a%20b?instance=i1");
        assert_eq!(of(None).api_path(), "/api/approvals/a%20b");
        for one in [of(Some("i1")), of(None)] {
            let members = one.members();
            let member =
                |name: &str| members.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            assert_eq!(RequestRef::of(|name| member(name).unwrap_or_default()), Some(one.clone()));
        }
        assert_eq!(RequestRef::of(|_| String::new()), None);
    }
}
