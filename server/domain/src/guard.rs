//! The one guard in front of all routes (`http-api` §5.5).
//!
//! It decides what happens to a request from its credential and its target. Pure: callers read the
//! credentials and send the answer. `docs/security.md` shows these decisions, and a test compares
//! the two.

use crate::host::{HostVerdict, Proof};
use crate::origin::{self, Credential, Entry, FetchSite, OriginVerdict, Presented};

/// What is asked for, as far as the guard cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Area {
    /// `/healthz`.
    Health,
    /// `/login` and the page's files: open, and not there while the pages are off.
    OpenPage,
    /// A page: guarded, and not there while the pages are off.
    Page,
    /// The API description and its page.
    Description,
    /// `/metrics`.
    Metrics,
    /// Everything else, unknown paths included.
    Guarded,
}

impl Area {
    /// Every area.
    pub const ALL: [Self; 6] =
        [Self::Health, Self::OpenPage, Self::Page, Self::Description, Self::Metrics, Self::Guarded];
}

/// What is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// `ui.enabled`.
    pub pages: bool,
    /// `api.openapi_enabled`.
    pub description: bool,
    /// `observability.prometheus_enabled`.
    pub metrics: bool,
}

/// A request as the guard sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// What for.
    pub area: Area,
    /// How it enters.
    pub entry: Entry,
    /// What it proved.
    pub credential: Credential,
    /// What the `Host` rule says.
    pub host: HostVerdict,
    /// Its `Origin`.
    pub presented: Presented,
    /// Its `Sec-Fetch-Site`.
    pub site: FetchSite,
    /// A person's browser going to a page: GET or HEAD outside the API that takes HTML.
    pub is_visit: bool,
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// It is served.
    Serve,
    /// Only that the service is up.
    MinimalHealth,
    /// 421: meant for another server.
    Misdirected,
    /// 404 in JSON: the pages are off.
    PagesOff,
    /// 404: switched off.
    Absent,
    /// 403: comes from a foreign page.
    ForeignOrigin,
    /// 401.
    Unauthenticated,
    /// 303 to the sign-in page.
    SignIn,
}

/// What a credential proves to the `Host` rule.
/// A page whose name was re-pointed at this machine can send none of these by itself.
#[must_use]
pub fn proof(credential: Credential) -> Proof {
    match credential {
        Credential::Bearer | Credential::Metrics | Credential::Proxy => Proof::Credential,
        Credential::AuthOff | Credential::None | Credential::WrongBearer | Credential::Cookie => {
            Proof::None
        }
    }
}

/// Decides, in the order of `http-api` §5.5.
pub fn decide(asked: &Asked, switches: Switches) -> Verdict {
    let is_limited = match asked.host {
        HostVerdict::Misdirected => return Verdict::Misdirected,
        HostVerdict::MinimalHealth => true,
        HostVerdict::Serve => false,
    };
    if matches!(asked.area, Area::OpenPage | Area::Page) && !switches.pages {
        return Verdict::PagesOff;
    }
    match origin::decide(asked.entry, asked.credential, asked.presented, asked.site) {
        OriginVerdict::Pass => {}
        OriginVerdict::Refused => return Verdict::ForeignOrigin,
        OriginVerdict::Unauthenticated => return Verdict::Unauthenticated,
    }
    let is_known = match asked.credential {
        Credential::AuthOff | Credential::Cookie | Credential::Proxy | Credential::Bearer => true,
        Credential::Metrics => asked.area == Area::Metrics,
        Credential::None | Credential::WrongBearer => false,
    };
    match asked.area {
        Area::Health if is_limited || !is_known => return Verdict::MinimalHealth,
        Area::Health | Area::OpenPage => return Verdict::Serve,
        Area::Description if !switches.description => return Verdict::Absent,
        Area::Metrics if !switches.metrics => return Verdict::Absent,
        Area::Page | Area::Description | Area::Metrics | Area::Guarded => {}
    }
    if is_known {
        return Verdict::Serve;
    }
    let is_page = matches!(asked.area, Area::Page | Area::Guarded);
    if asked.is_visit && is_page && switches.pages && asked.credential == Credential::None {
        Verdict::SignIn
    } else {
        Verdict::Unauthenticated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: Switches = Switches { pages: true, description: true, metrics: true };
    const OFF: Switches = Switches { pages: false, description: false, metrics: false };
    const CREDENTIALS: [Credential; 7] = [
        Credential::AuthOff,
        Credential::None,
        Credential::WrongBearer,
        Credential::Cookie,
        Credential::Proxy,
        Credential::Bearer,
        Credential::Metrics,
    ];

    fn asked(area: Area, credential: Credential) -> Asked {
        Asked {
            area,
            entry: Entry::Read,
            credential,
            host: HostVerdict::Serve,
            presented: Presented::Absent,
            site: FetchSite::Absent,
            is_visit: false,
        }
    }

    #[test]
    fn what_is_switched_off_is_not_there_for_anybody() {
        for credential in CREDENTIALS {
            for area in [Area::OpenPage, Area::Page] {
                assert_eq!(decide(&asked(area, credential), OFF), Verdict::PagesOff);
            }
            for area in [Area::Description, Area::Metrics] {
                assert_eq!(decide(&asked(area, credential), OFF), Verdict::Absent);
            }
        }
        let visit = Asked { is_visit: true, ..asked(Area::Guarded, Credential::None) };
        assert_eq!(decide(&visit, OFF), Verdict::Unauthenticated, "no page to sign in on");
    }

    #[test]
    fn h1_a_cookie_under_a_foreign_host_reads_no_health_report() {
        let health =
            Asked { host: HostVerdict::MinimalHealth, ..asked(Area::Health, Credential::Cookie) };
        assert_eq!(decide(&health, ON), Verdict::MinimalHealth);
        let off = Asked { credential: Credential::AuthOff, ..health };
        assert_eq!(decide(&off, ON), Verdict::MinimalHealth);
    }

    #[test]
    fn h23_a_scrape_token_opens_one_place() {
        for area in Area::ALL {
            let verdict = decide(&asked(area, Credential::Metrics), ON);
            let expected = match area {
                Area::Metrics | Area::OpenPage => Verdict::Serve,
                Area::Health => Verdict::MinimalHealth,
                Area::Page | Area::Description | Area::Guarded => Verdict::Unauthenticated,
            };
            assert_eq!(verdict, expected, "{area:?}");
        }
    }

    #[test]
    fn api_callers_are_never_sent_to_a_page() {
        for area in [Area::Description, Area::Metrics] {
            let visit = Asked { is_visit: true, ..asked(area, Credential::None) };
            assert_eq!(decide(&visit, ON), Verdict::Unauthenticated, "{area:?}");
        }
    }
}
