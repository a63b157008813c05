//! Lines that hold no secret: what builds, tests, tools and people write.

use super::{Dice, Harmless};

/// How often each kind is drawn.
const EACH: usize = 56;
/// Lines as mixed as those of a key: masked on purpose, so they are few.
const EACH_WRAPPED: usize = 4;

/// Draws every kind in turn, as they follow each other in a log.
pub(super) fn all(dice: &mut Dice) -> Vec<Harmless> {
    let mut out = Vec::new();
    for _ in 0..EACH {
        for (kind, pattern) in KINDS {
            out.push(Harmless { kind, text: words(dice, pattern) });
        }
    }
    for _ in 0..EACH_WRAPPED {
        out.push(Harmless { kind: "wrapped base64", text: dice.fill("{b76}") });
    }
    out
}

/// Fills a pattern in; `~` is an ordinary word.
fn words(dice: &mut Dice, pattern: &str) -> String {
    let mut out = String::new();
    let mut pieces = pattern.split('~').peekable();
    while let Some(piece) = pieces.next() {
        out.push_str(&dice.fill(piece));
        if pieces.peek().is_some() {
            out.push_str(dice.pick::<&str>(&WORDS));
        }
    }
    out
}

const WORDS: [&str; 24] = [
    "account",
    "branch",
    "cache",
    "driver",
    "editor",
    "folder",
    "gateway",
    "handler",
    "index",
    "journal",
    "kernel",
    "ledger",
    "module",
    "network",
    "object",
    "parser",
    "queue",
    "router",
    "scheduler",
    "table",
    "update",
    "viewer",
    "worker",
    "zone",
];

#[rustfmt::skip]
const KINDS: &[(&str, &str)] = &[
    ("commit", "commit {h40}"),
    ("short commit", "{h7} ~: add the ~ of the ~"),
    ("diff header", "index {h7}..{h7} 100644"),
    ("merge", "Merge branch '~-{d3}' into main ({h40})"),
    ("Cargo.lock", "checksum = \"{h64}\""),
    ("go.sum", "github.com/example/~ v1.{d2}.{d1} h1:{b43}="),
    ("package-lock", "      \"integrity\": \"sha512-{b86}==\","),
    ("yarn.lock", "  resolved \"https://registry.yarnpkg.com/~/-/~-{d1}.{d2}.{d1}.tgz#{h40}\""),
    ("requirements", "    --hash=sha256:{h64} \\"),
    ("image digest", "FROM docker.io/library/~:{d1}.{d2}@sha256:{h64}"),
    ("data address", "<img src=\"data:image/png;base64,iVBORw0KGgo{b120}==\">"),
    ("checksum file", "{h64}  ~-{d1}.{d2}.tar.gz"),
    ("path", "/home/app/work/~/src/~/~_{d2}.rs:{d3}:{d2}"),
    ("object path", ".git/objects/{h2}/{h38}"),
    ("build", "   Compiling ~-~ v{d1}.{d2}.{d1} (/home/app/work/~)"),
    ("version", "~ {d1}.{d2}.{d2} ({h7} 2026-03-{d2})"),
    ("test", "test ~::tests::the_~_of_a_~_is_kept ... ok"),
    ("pytest", "tests/test_~.py::test_~_{d2} PASSED                     [ {d2}%]"),
    ("access log", "192.0.2.{d2} - - [01/Mar/2026:10:{d2}:00 +0000] \"GET /~/{d4} HTTP/1.1\" 200 {d4}"),
    ("service log", "2026-03-01T10:20:{d2}.{d3}Z INFO ~::~: the ~ took {d3} ms"),
    ("JSON log", "{\"ts\":{d10},\"level\":\"info\",\"msg\":\"~ ready\",\"request_id\":\"{h16}\",\"ms\":{d2}}"),
    ("ETag", "etag: W/\"{h8}-{h11}\""),
    ("pod", "pod/~-{a9}-{a5}   1/1   Running   0   {d2}m"),
    ("layer", "{h12}: Pull complete"),
    ("stack trace", "    at ~.~ (/app/node_modules/~/lib/~.js:{d3}:{d2})"),
    ("Rust", "    let ~ = ~.next().ok_or(Error::~)?; // {d3}"),
    ("Rust about tokens", "    fn next_token(&mut self) -> Option<Token> { self.~.pop() }"),
    ("JavaScript", "const { ~, ~ } = await import('./~.js')"),
    ("SQL", "SELECT ~_id, ~ FROM ~ WHERE ~_id = {d4} ORDER BY ~ LIMIT {d2};"),
    ("settings", "max_tokens: {d4}"),
    ("settings of a model", "\"tokenizer\": \"~\", \"temperature\": 0.{d1}, \"max_tokens\": {d4},"),
    ("YAML", "  ~_timeout: {d2}s"),
    ("prose about passwords", "The password of the ~ must have at least {d2} characters."),
    ("prose about keys", "Press any key to see the ~; the key of the ~ is its name."),
    ("prose", "We moved the ~ behind the ~ because the ~ was slow for {d2} users."),
    ("markdown", "- [~ {d1}.{d1}](https://docs.example.org/~/{d1}.{d1}/~.html#the-~)"),
    ("address", "https://github.com/example/~/pull/{d4}/files#diff-{h64}"),
    ("time", "Sun Mar  1 10:{d2}:{d2} UTC 2026"),
    ("progress", "[{d2}/{d3}] ~ {d3} KiB at {d2}.{d1} MiB/s"),
    ("process list", "app  {d5}  0.{d1}  1.{d1} {d6} {d5} ?  Sl  10:20  0:0{d1} /usr/bin/~ --~ {d4}"),
];
