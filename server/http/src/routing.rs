//! What a route is, and how the routes of a path are found.

use crate::call::Call;
use crate::error::Refusal;
use crate::layers::body::BodyKind;
use futures_util::future::BoxFuture;
use poem::Response;
use poem::http::Method;
use std::collections::HashMap;

/// One method of one path.
#[derive(Debug, Clone)]
pub struct Route {
    /// Method; HEAD comes with every GET.
    pub method: Method,
    /// Path with `{name}` for one segment and `{*name}` for one or more at the end.
    pub pattern: String,
    /// Who may use it, and when it is there at all.
    pub guard: Guard,
    /// What it takes.
    pub body: BodyKind,
    /// What it is.
    pub kind: RouteKind,
    pub(crate) serve: Serve,
}

/// Class of a route for the guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Needs a credential when authentication is on.
    Guarded,
    /// Needs none.
    Public,
    /// Guarded, and not there while the pages are off.
    Ui,
    /// Needs none, and not there while the pages are off.
    UiPublic,
    /// Guarded, and not there while the API description is off.
    Description,
    /// Guarded, absent while metrics are off, and all that a scrape token opens.
    Metrics,
}

/// What a route is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteKind {
    /// Answers once.
    Plain,
    /// Answers once, even for a foreign `Host`, then with the minimal body.
    Health,
    /// A WebSocket handshake.
    Socket,
}

/// Who answers.
#[derive(Clone, Copy)]
pub(crate) enum Serve {
    /// The documented operation with this number ([`crate::routes::endpoints`]).
    Documented(usize),
    /// A handler of this crate.
    Own(Handler),
}

impl std::fmt::Debug for Serve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Documented(_) => "Documented",
            Self::Own(_) => "Own",
        })
    }
}

/// Answers one request.
pub(crate) type Handler = fn(Call) -> BoxFuture<'static, Result<Response, Refusal>>;

/// The rows of the paths without names, found by hash.
///
/// Nearly every request is for one of these,
/// and trying all patterns was a twentieth of what it cost.
#[derive(Debug)]
pub(crate) struct Literals(HashMap<String, Vec<usize>>);

impl Literals {
    pub(crate) fn of(table: &[Route]) -> Self {
        let mut rows: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, route) in table.iter().enumerate().filter(|(_, row)| !row.pattern.contains('{')) {
            rows.entry(route.pattern.clone()).or_default().push(at);
        }
        Self(rows)
    }

    /// What [`find`] finds for a path that is written exactly like a pattern.
    pub(crate) fn find<'t>(&self, table: &'t [Route], path: &str) -> Option<Found<'t>> {
        let rows = self.0.get(path)?;
        let rows = rows.iter().filter_map(|at| table.get(*at)).collect();
        Some(Found { rows, params: Vec::new() })
    }
}

/// The rows of one path, and the segments that stand for its names.
#[derive(Debug)]
pub(crate) struct Found<'t> {
    pub(crate) rows: Vec<&'t Route>,
    pub(crate) params: Vec<String>,
}

/// Finds the rows whose pattern fits. A literal segment wins over a named one.
pub(crate) fn find<'t>(table: &'t [Route], segments: &[String]) -> Option<Found<'t>> {
    let mut found: Option<(usize, Found<'t>)> = None;
    for route in table {
        let Some(params) = fits(&route.pattern, segments) else {
            continue;
        };
        match &mut found {
            Some((names, best)) if *names == params.len() => best.rows.push(route),
            Some((names, _)) if *names < params.len() => {}
            _ => found = Some((params.len(), Found { rows: vec![route], params })),
        }
    }
    found.map(|(_, found)| found)
}

fn fits(pattern: &str, segments: &[String]) -> Option<Vec<String>> {
    let mut parts = pattern.trim_start_matches('/').split('/').filter(|part| !part.is_empty());
    let mut segments = segments.iter();
    let mut params = Vec::new();
    loop {
        match (parts.next(), segments.next()) {
            (None, None) => return Some(params),
            (Some(part), Some(segment)) if part.starts_with("{*") => {
                let rest = segments.fold(segment.clone(), |rest, next| rest + "/" + next);
                params.push(rest);
                return Some(params);
            }
            (Some(part), Some(segment)) if part.starts_with('{') => params.push(segment.clone()),
            (Some(part), Some(segment)) if part == segment => {}
            _ => return None,
        }
    }
}

impl Found<'_> {
    /// The row for a method, HEAD read as GET.
    pub(crate) fn row(&self, method: &Method) -> Option<&Route> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.rows.iter().copied().find(|row| row.method == *method)
    }

    /// The guard of the asked row; without one, that of all rows when they agree.
    pub(crate) fn guard(&self, method: &Method) -> Guard {
        if let Some(row) = self.row(method) {
            return row.guard;
        }
        let mut guards = self.rows.iter().map(|row| row.guard);
        match guards.next() {
            Some(first) if guards.all(|guard| guard == first) => first,
            _ => Guard::Guarded,
        }
    }

    /// Value of the `Allow` header.
    pub(crate) fn allow(&self) -> String {
        let mut methods: Vec<&str> = self.rows.iter().map(|row| row.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.push("OPTIONS");
        methods.sort_unstable();
        methods.join(", ")
    }
}
