//! `docs/security.md` shows the decisions of the guard as they are.
#![expect(clippy::unwrap_used, reason = "a helper that cannot go on fails its test")]

use svc_domain::guard::{Area, Asked, Switches, Verdict, decide, proof};
use svc_domain::host::{self, AllowedHosts, Authority, HostVerdict};
use svc_domain::origin::{Credential, Entry, FetchSite, Presented};

const ON: Switches = Switches { pages: true, description: true, metrics: true };
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

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Serve => "served",
        Verdict::MinimalHealth => "`{\"status\":\"ok\"}`",
        Verdict::Misdirected => "421",
        Verdict::PagesOff | Verdict::Absent => "404",
        Verdict::ForeignOrigin => "403",
        Verdict::Unauthenticated => "401",
        Verdict::SignIn => "303 to `/login`",
    }
}

fn credential_name(credential: Credential) -> &'static str {
    match credential {
        Credential::AuthOff => "authentication off",
        Credential::None => "none",
        Credential::WrongBearer => "wrong Bearer",
        Credential::Cookie => "session cookie",
        Credential::Proxy => "trusted proxy",
        Credential::Bearer => "Bearer",
        Credential::Metrics => "metrics token",
    }
}

fn area_name(area: Area) -> &'static str {
    match area {
        Area::Health => "`/healthz`",
        Area::OpenPage => "`/login`, `/static/*`",
        Area::Page => "pages",
        Area::Description => "`/docs`, `/openapi.json`",
        Area::Metrics => "`/metrics`",
        Area::Guarded => "everything else",
    }
}

fn line(name: &str, cells: impl Iterator<Item = String>) -> String {
    format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns + 1))
}

/// The tables of the document.
fn tables() -> String {
    let mut text = String::from("Reading, by credential and area:\n\n");
    text += &line("Credential", Area::ALL.iter().map(|area| area_name(*area).to_owned()));
    text += &rule(Area::ALL.len());
    for credential in CREDENTIALS {
        text += &line(
            credential_name(credential),
            Area::ALL.iter().map(|area| {
                let plain = decide(&asked(*area, credential), ON);
                let visit = decide(&Asked { is_visit: true, ..asked(*area, credential) }, ON);
                if plain == visit {
                    word(plain).to_owned()
                } else {
                    format!("{}; a browser: {}", word(plain), word(visit))
                }
            }),
        );
    }
    for (title, entry) in [
        ("Writing", Entry::Write),
        ("`POST /login`", Entry::Login),
        ("Opening a WebSocket", Entry::Socket),
    ] {
        text += &format!("\n{title}, by credential and `Origin`:\n\n");
        let columns = [Presented::Absent, Presented::Listed, Presented::Foreign];
        text += "| Credential | absent | absent, cross-site | allowed | other |\n";
        text += &rule(4);
        for credential in CREDENTIALS {
            let area = if entry == Entry::Login { Area::OpenPage } else { Area::Guarded };
            let cell = |presented, site| {
                let asked = Asked { entry, presented, site, ..asked(area, credential) };
                word(decide(&asked, ON)).to_owned()
            };
            let [absent, listed, foreign] = columns;
            text += &line(
                credential_name(credential),
                [
                    cell(absent, FetchSite::Absent),
                    cell(absent, FetchSite::Elsewhere),
                    cell(listed, FetchSite::Absent),
                    cell(foreign, FetchSite::Absent),
                ]
                .into_iter(),
            );
        }
    }
    text += "\nA `Host` that is not ours, by credential:\n\n";
    text += "| Credential | `/healthz` | everything else |\n";
    text += &rule(2);
    for credential in CREDENTIALS {
        let cell = |area, what| {
            let host = host::decide(
                &AllowedHosts::default(),
                Some(&Authority::parse("evil.example").unwrap()),
                proof(credential),
                what,
            );
            word(decide(&Asked { host, ..asked(area, credential) }, ON)).to_owned()
        };
        let cells =
            [cell(Area::Health, host::Asked::Health), cell(Area::Guarded, host::Asked::Other)];
        text += &line(credential_name(credential), cells.into_iter());
    }
    text
}

/// `SVC_UPDATE_SNAPSHOTS=1 cargo test -p svc-domain` writes the tables anew.
#[test]
fn the_document_shows_the_decisions_as_they_are() {
    const BEGIN: &str = "<!-- tables: begin -->\n";
    const END: &str = "<!-- tables: end -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (shown, after) = rest.split_once(END).unwrap();
    let tables = format!("\n{}\n", tables());
    if std::env::var_os("SVC_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{tables}{END}{after}")).unwrap();
    } else {
        assert_eq!(shown, tables, "docs/security.md differs from the code");
    }
}
