//! Import cycles within a package: which files use each other in a circle.
//!
//! A file uses another one when it names something of it by a path: in `use`, in code, or in the
//! arguments of a macro. A name that is re-exported counts for the file that defines it. Modules
//! of tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, UseTree};

/// Path of a module from the root of its package; the root itself is empty.
type Module = Vec<String>;

/// One file of a package.
#[derive(Debug)]
struct File {
    /// Paths that are named, resolved as far as this file alone allows.
    named: Vec<Vec<String>>,
    /// What imported names mean, here and for files that import them from this one.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths of imports that are not only passed on.
    used: Vec<Vec<String>>,
}

/// Groups of files that import each other in a circle, largest first.
///
/// Each group is sorted. `sources` are pairs of a path below `src` and its text.
pub fn cycles(sources: &[(String, String)]) -> Vec<Vec<String>> {
    let names: BTreeMap<Module, &str> =
        sources.iter().map(|(path, _)| (module(path), path.as_str())).collect();
    let mut files = BTreeMap::new();
    for (path, text) in sources {
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let own = module(path);
        let mut reader = Reader { at: own.clone(), ..Reader::default() };
        for item in &parsed.items {
            reader.visit_item(item);
        }
        let Reader { named, imports, used, tests, .. } = reader;
        files.insert(own, (File { named, imports, used }, tests));
    }
    let tests: BTreeSet<Module> =
        files.values().flat_map(|(_, tests)| tests.iter().cloned()).collect();
    let files: BTreeMap<Module, File> = files
        .into_iter()
        .filter(|(own, _)| !tests.iter().any(|test| own.starts_with(test)))
        .map(|(own, (file, _))| (own, file))
        .collect();

    let mut edges: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    for (own, file) in &files {
        let used = file.used.iter().chain(&file.named);
        let others = used.filter_map(|path| definer(&files, own, path)).filter(|to| *to != own);
        edges.insert(own, others.collect());
    }
    let mut found: Vec<Vec<String>> = strongly_connected(&edges)
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| {
            let mut group: Vec<String> =
                group.into_iter().map(|own| names[own].to_owned()).collect();
            group.sort();
            group
        })
        .collect();
    found.sort_by_key(|group| std::cmp::Reverse(group.len()));
    found
}

fn module(path: &str) -> Module {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem {
        "lib" | "main" => Vec::new(),
        _ => stem.split('/').map(str::to_owned).collect(),
    }
}

/// The file that defines what a path names; `None` for what is not of this package.
fn definer<'f>(
    files: &'f BTreeMap<Module, File>,
    own: &Module,
    path: &[String],
) -> Option<&'f Module> {
    let mut path = path.to_vec();
    // Re-exports of re-exports: no package has a chain of eight.
    for _ in 0..8 {
        let (module, file) =
            (0..=path.len()).rev().find_map(|end| files.get_key_value(&path[..end]))?;
        let passed_on = path.get(module.len()).and_then(|name| file.imports.get(name));
        match passed_on {
            Some(target) if module != own => {
                path = target.iter().chain(&path[module.len() + 1..]).cloned().collect();
            }
            _ => return Some(module),
        }
    }
    None
}

/// Collects what a file names.
#[derive(Debug, Default)]
struct Reader {
    /// The module that is read: the file, or a module written inside it.
    at: Module,
    named: Vec<Vec<String>>,
    imports: BTreeMap<String, Vec<String>>,
    used: Vec<Vec<String>>,
    /// Modules in other files that only tests have.
    tests: Vec<Module>,
    /// Modules that this file declares.
    children: BTreeSet<String>,
}

impl Reader {
    /// A path from the root of the package; `None` for one of another package.
    fn resolved(&self, path: &[String]) -> Option<Vec<String>> {
        let mut base = self.at.clone();
        let mut rest = path;
        match path.first().map(String::as_str)? {
            "crate" => (base, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {}
            first => {
                if let Some(imported) = self.imports.get(first) {
                    return Some(imported.iter().chain(&path[1..]).cloned().collect());
                }
                if !self.children.contains(first) {
                    return None;
                }
            }
        }
        while rest.first().is_some_and(|segment| segment == "super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    fn name(&mut self, path: &[String]) {
        // One name alone is local, or was imported.
        if path.len() > 1
            && let Some(path) = self.resolved(path)
        {
            self.named.push(path);
        }
    }
}

impl<'s> Visit<'s> for Reader {
    fn visit_item(&mut self, item: &'s Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        } else if let Item::Mod(ItemMod { ident, content: None, .. }) = item {
            let mut test = self.at.clone();
            test.push(ident.to_string());
            self.tests.push(test);
        }
    }

    fn visit_item_mod(&mut self, item: &'s ItemMod) {
        self.children.insert(item.ident.to_string());
        if item.content.is_some() {
            self.at.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.at.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'s ItemUse) {
        let is_passed_on = matches!(item.vis, syn::Visibility::Public(_));
        let mut leaves = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut leaves);
        for (name, path) in leaves {
            let Some(path) = self.resolved(&path) else { continue };
            if !is_passed_on {
                self.used.push(path.clone());
            }
            self.imports.insert(name, path);
        }
    }

    fn visit_path(&mut self, path: &'s syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.name(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'s Macro) {
        // What a macro makes of its arguments is not known; the paths in them are.
        let text = item.tokens.to_string();
        let mut path: Vec<String> = Vec::new();
        let mut goes_on = false;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        for token in text.replace("::", " :: ").split_whitespace() {
            for part in token.split_inclusive(|c: char| !is_word(c) && c != ':') {
                let word = part.trim_end_matches(|c: char| !is_word(c) && c != ':');
                if word == "::" {
                    goes_on = true;
                    continue;
                }
                if !goes_on || word.is_empty() {
                    self.name(&std::mem::take(&mut path));
                }
                if !word.is_empty() {
                    path.push(word.to_owned());
                }
                goes_on = false;
            }
        }
        self.name(&path);
        visit::visit_macro(self, item);
    }
}

/// Every leaf of a tree of imports: the name it gets here, and its path.
fn flatten(tree: &UseTree, before: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    let mut leaf = |name: String, last: String| {
        let mut path = before.clone();
        if last != "self" && last != "*" {
            path.push(last);
        }
        let name = if name == "self" { path.last().cloned().unwrap_or_default() } else { name };
        leaves.push((name, path));
    };
    match tree {
        UseTree::Name(name) => leaf(name.ident.to_string(), name.ident.to_string()),
        UseTree::Rename(name) => leaf(name.rename.to_string(), name.ident.to_string()),
        UseTree::Glob(_) => leaf("*".to_owned(), "*".to_owned()),
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, before, leaves);
            }
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let Ok(list) = attribute.meta.require_list() else { return false };
    let condition = list.tokens.to_string();
    list.path.is_ident("cfg")
        && condition.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
}

/// Tarjan's algorithm: groups of nodes that reach each other.
fn strongly_connected<'m>(
    edges: &BTreeMap<&'m Module, BTreeSet<&'m Module>>,
) -> Vec<BTreeSet<&'m Module>> {
    #[derive(Default)]
    struct Search<'m> {
        index: BTreeMap<&'m Module, usize>,
        low: BTreeMap<&'m Module, usize>,
        stack: Vec<&'m Module>,
        groups: Vec<BTreeSet<&'m Module>>,
    }
    fn visit<'m>(
        search: &mut Search<'m>,
        edges: &BTreeMap<&'m Module, BTreeSet<&'m Module>>,
        node: &'m Module,
    ) {
        let number = search.index.len();
        search.index.insert(node, number);
        search.low.insert(node, number);
        search.stack.push(node);
        for next in edges.get(node).into_iter().flatten() {
            if !search.index.contains_key(next) {
                visit(search, edges, next);
                let low = search.low[node].min(search.low[next]);
                search.low.insert(node, low);
            } else if search.stack.contains(next) {
                let low = search.low[node].min(search.index[next]);
                search.low.insert(node, low);
            }
        }
        if search.low[node] == number {
            let from = search.stack.iter().position(|entry| *entry == node).unwrap();
            let group = search.stack.split_off(from).into_iter().collect();
            search.groups.push(group);
        }
    }
    let mut search = Search::default();
    for node in edges.keys() {
        if !search.index.contains_key(node) {
            visit(&mut search, edges, node);
        }
    }
    search.groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        cycles(&files)
    }

    #[test]
    fn a_circle_is_found_through_every_kind_of_path() {
        for (a, b) in [
            ("use crate::b::B;", "use crate::a::A;"),
            ("use crate::{b::{B, C}, d};", "use super::a::A as Other;"),
            ("fn f() -> crate::b::B { loop {} }", "use crate::a;\nfn f() { a::g(); }"),
            ("use super::b::*;", "fn f() { list![1, crate::a::A, 2]; }"),
            ("mod inner { use super::super::b::B; }", "use crate::a::A;"),
            ("use crate::B;", "use crate::a::A;"),
        ] {
            let root = "mod a; mod b; mod d; pub use b::B;";
            let found = of(&[("lib.rs", root), ("a.rs", a), ("b.rs", b), ("d.rs", "")]);
            assert_eq!(found, [["a.rs", "b.rs"]], "{a} {b}");
        }
    }

    #[test]
    fn a_longer_circle_through_the_root_and_nested_modules_is_found() {
        let found = of(&[
            ("lib.rs", "mod cli; pub struct Shared; use cli::run;"),
            ("cli.rs", "mod work; pub struct Call; pub fn run() { work::act() }"),
            ("cli/work.rs", "use super::Call; use crate::Shared;"),
        ]);
        assert_eq!(found, [["cli.rs", "cli/work.rs", "lib.rs"]]);
    }

    #[test]
    fn one_way_tests_re_exports_and_other_packages_are_no_circle() {
        for (a, b) in [
            ("use crate::b::B;", "use other::a::A;"),
            ("use crate::b::B;", "#[cfg(test)] mod tests { use crate::a::A; }"),
            ("use crate::b::B;", "#[cfg(test)] mod tests;"),
            ("pub use crate::b::B;", "use crate::a::A;"),
            ("use crate::b::B;", "// use crate::a::A;\nconst A: &str = \"crate::a::A\";"),
        ] {
            let found = of(&[
                ("lib.rs", "mod a; mod b; pub use a::A;"),
                ("a.rs", a),
                ("b.rs", b),
                ("b/tests.rs", "use super::*; use crate::a::A;"),
            ]);
            assert!(found.is_empty(), "{a} {b}: {found:?}");
        }
    }
}
