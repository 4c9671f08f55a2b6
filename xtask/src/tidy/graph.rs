//! Finds which file of a crate uses which other file of it.
//!
//! An arrow is a `use` of, or a path to, an item of another file. A `mod` line is none, nor is the name of a module
//! alone. An item that a module re-exports belongs to the file that defines it. Methods are invisible here: a file that
//! only calls methods of a type has no arrow to its file.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Kind, Source, Token};

/// Re-exports that are followed from a name to its file; a `use` that leads back to itself ends here.
const HOPS_MAX: usize = 16;

/// Words that a definition of an item begins with, before its name.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "union", "type", "const", "static", "macro_rules"];

/// The files of one crate, tests left out, and the arrows between them.
pub(super) struct Graph {
    /// Paths below `src` without `.rs`, in order.
    pub(super) files: Vec<String>,
    /// From one file to another, with the line and the path of the first use.
    pub(super) arrows: BTreeMap<(usize, usize), String>,
}

/// Names that a module has.
#[derive(Default)]
struct Scope {
    items: BTreeSet<String>,
    /// Name in this module and path as written; the path of an external crate too.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Module(usize),
    /// An item that this file defines.
    Item(usize),
}

struct Tree {
    /// File by module path; the root is the empty path.
    modules: BTreeMap<String, usize>,
    /// Module path by file.
    paths: Vec<String>,
    scopes: Vec<Scope>,
}

/// A path in the code, with its line. A glob ends in `*`.
type Mention = (usize, Vec<String>);

impl Graph {
    /// Builds the graph of the files of one crate.
    pub(super) fn of<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Graph {
        let sources: Vec<&Source> = sources.into_iter().filter(|source| !source.is_test).collect();
        let has_library = sources.iter().any(|source| source.module == "lib");
        let root = if has_library { "lib" } else { "main" };
        let mut tree = Tree { modules: BTreeMap::new(), paths: Vec::new(), scopes: Vec::new() };
        let mut mentions = Vec::new();
        for (file, source) in sources.iter().enumerate() {
            let path = if source.module == root { "" } else { &source.module };
            tree.modules.insert(path.to_owned(), file);
            tree.paths.push(path.to_owned());
            let (scope, mentioned) = names(&source.code);
            tree.scopes.push(scope);
            mentions.push(mentioned);
        }
        let mut arrows = BTreeMap::new();
        for (from, (line, path)) in
            mentions.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |one| (from, one)))
        {
            let is_glob = path.last().is_some_and(|last| last == "*");
            let named = &path[..path.len() - usize::from(is_glob)];
            let to = match tree.resolve(from, named, HOPS_MAX) {
                Some(Target::Item(to)) => to,
                Some(Target::Module(to)) if is_glob => to,
                _ => continue,
            };
            if to != from {
                arrows.entry((from, to)).or_insert_with(|| format!("line {line}: {}", path.join("::")));
            }
        }
        Graph { files: sources.iter().map(|source| source.module.clone()).collect(), arrows }
    }

    /// One line for an arrow.
    pub(super) fn arrow(&self, (from, to): (usize, usize)) -> String {
        format!("{} -> {} ({})", self.files[from], self.files[to], self.arrows[&(from, to)])
    }
}

impl Tree {
    fn resolve(&self, module: usize, path: &[String], hops: usize) -> Option<Target> {
        let hops = hops.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(*self.modules.get("")?),
            "self" => Target::Module(module),
            "super" => Target::Module(self.parent(module)?),
            name => self.lookup(module, name, hops)?,
        };
        while let (Target::Module(at), Some((name, after))) = (target, rest.split_first()) {
            target = match name.as_str() {
                "super" => Target::Module(self.parent(at)?),
                name => self.lookup(at, name, hops).unwrap_or(Target::Item(at)),
            };
            rest = after;
        }
        Some(target)
    }

    fn lookup(&self, module: usize, name: &str, hops: usize) -> Option<Target> {
        let parent = &self.paths[module];
        let child = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        if let Some(child) = self.modules.get(&child) {
            return Some(Target::Module(*child));
        }
        let scope = &self.scopes[module];
        if let Some(path) = scope.imports.get(name) {
            return self.resolve(module, path, hops);
        }
        if scope.items.contains(name) {
            return Some(Target::Item(module));
        }
        let hops = hops.checked_sub(1)?;
        scope.globs.iter().find_map(|glob| match self.resolve(module, glob, hops)? {
            Target::Module(at) if at != module => self.lookup(at, name, hops),
            _ => None,
        })
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let path = &self.paths[module];
        let above = path.rsplit_once('/').map_or("", |(above, _)| above);
        self.modules.get(above).copied().filter(|_| !path.is_empty())
    }
}

/// Returns the names that a file has and the paths that it mentions.
fn names(code: &[Token]) -> (Scope, Vec<Mention>) {
    let (mut scope, mut mentions) = (Scope::default(), Vec::new());
    let mut at = 0;
    while let Some(token) = code.get(at) {
        let is_use = token.is_word("use") && !code.get(at + 1).is_some_and(|next| next.is_sign("<"));
        let is_inside = at > 0 && (code[at - 1].is_sign("::") || code[at - 1].is_sign("."));
        if is_use {
            let mut found = Vec::new();
            at = imports(code, at + 1, &[], &mut found);
            for (line, path, name) in found {
                match (path.last().map(String::as_str), name) {
                    (Some("*"), _) => scope.globs.push(path[..path.len() - 1].to_vec()),
                    (_, Some(name)) => drop(scope.imports.insert(name, path.clone())),
                    (_, None) => {}
                }
                mentions.push((line, path));
            }
            continue;
        }
        if token.kind == Kind::Word && ITEMS.contains(&token.text.as_str()) {
            let name = code[at + 1..].iter().find(|next| !next.is_sign("!") && !next.is_word("mut"));
            scope.items.extend(name.filter(|name| name.kind == Kind::Word).map(|name| name.text.clone()));
        }
        if token.kind == Kind::Word && !is_inside && code.get(at + 1).is_some_and(|next| next.is_sign("::")) {
            let mut path = vec![token.text.clone()];
            while let [sign, word, ..] = &code[at + 1..]
                && sign.is_sign("::")
                && word.kind == Kind::Word
            {
                path.push(word.text.clone());
                at += 2;
            }
            mentions.push((token.line, path));
        }
        at += 1;
    }
    (scope, mentions)
}

/// Reads one tree of a `use`; returns the place after it. Each name comes with its line, its path and its name here, which
/// is `None` for `as _`.
fn imports(
    code: &[Token],
    mut at: usize,
    above: &[String],
    found: &mut Vec<(usize, Vec<String>, Option<String>)>,
) -> usize {
    let mut path = above.to_vec();
    let line = code.get(at).map_or(0, |token| token.line);
    while let Some(token) = code.get(at) {
        at += 1;
        if token.is_sign("{") {
            while code.get(at).is_some_and(|next| !next.is_sign("}")) {
                at = imports(code, at, &path, found);
                at += usize::from(code.get(at).is_some_and(|next| next.is_sign(",")));
            }
            return at + 1;
        } else if token.is_sign("*") || (token.kind == Kind::Word && token.text != "as") {
            path.push(token.text.clone());
        } else if !token.is_sign("::") {
            at -= 1;
            break;
        }
    }
    // `a::{self}` names `a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let mut name = path.last().cloned();
    if code.get(at).is_some_and(|token| token.is_word("as")) {
        name = code.get(at + 1).map(|token| token.text.clone()).filter(|name| name != "_");
        at += 2;
    }
    found.push((line, path, name));
    at
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Builds the graph of files that are given as name and text.
    pub(in super::super) fn graph(files: &[(&str, &str)]) -> Graph {
        let source =
            |(name, text): &(&str, &str)| Source::of(&format!("crates/x/src/{name}.rs"), text).unwrap();
        let sources: Vec<Source> = files.iter().map(source).collect();
        Graph::of(&sources)
    }

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let graph = graph(files);
        let found: Vec<String> = graph.arrows.keys().map(|arrow| graph.arrow(*arrow)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_use_is_an_arrow_and_a_mod_line_is_none() {
        check(
            &[
                ("lib", "mod a; mod b;"),
                ("a", "use crate::b::{X, y as z};"),
                ("b", "pub struct X; pub fn y() {}"),
            ],
            &["a -> b (line 1: crate::b::X)"],
        );
    }

    #[test]
    fn a_path_is_an_arrow_and_a_module_alone_is_none() {
        check(
            &[
                ("lib", "mod a; mod b; mod c;"),
                ("a", "use crate::{b, c};\nfn f() { b::g() }"),
                ("b", "pub(crate) fn g() { super::c::d::h() }"),
                ("c", "mod d;"),
                ("c/d", "pub(in crate::c) fn h() {}"),
            ],
            &["a -> b (line 2: b::g)", "b -> c/d (line 1: super::c::d::h)"],
        );
    }

    #[test]
    fn a_re_export_leads_to_the_file_that_defines_the_item() {
        check(
            &[
                ("lib", "pub mod a; mod b; pub use a::T;"),
                ("a", "mod t; mod u; pub use t::T; pub use u::*;"),
                ("a/t", "pub enum T { A }"),
                ("a/u", "pub const U: u8 = 1;"),
                ("b", "use crate::T;\nuse crate::a::U;\nfn f() { T::A }"),
            ],
            &[
                "lib -> a/t (line 1: a::T)",
                "a -> a/t (line 1: t::T)",
                "a -> a/u (line 1: u::*)",
                "b -> a/t (line 1: crate::T)",
                "b -> a/u (line 2: crate::a::U)",
            ],
        );
    }

    #[test]
    fn tests_external_crates_and_own_items_are_no_arrows() {
        check(
            &[
                ("main", "mod a; mod b;"),
                (
                    "a",
                    "use std::b::X; enum Y { Z } fn f() { Y::Z; x.b::<u8>() } #[cfg(test)] mod tests { use crate::b; }",
                ),
                ("b", "pub fn y() {}"),
                ("a/tests", "use crate::b::y;"),
            ],
            &[],
        );
    }
}
