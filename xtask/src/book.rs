//! `cargo xtask book`: the pages as a book, by mdBook.
//!
//! The book's sources are arranged in `target/book` as the pages are in the repository, so that links between them need
//! no change. Links to files that are not pages lead to the repository's address.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::check::{self, SourceFile, links};
use crate::process;
use crate::workspace::Workspace;

/// The pages beside those in `docs`, and what they are called.
const FRONT: [(&str, &str); 5] = [
    ("README.md", "Anabranch"),
    ("ARCHITECTURE.md", "Architecture"),
    ("CONTRIBUTING.md", "Contributing"),
    ("SECURITY.md", "Reporting a hole"),
    ("CHANGELOG.md", "Changes"),
];
/// The page that lists those in `docs`, under headings.
const INDEX: &str = "docs/README.md";
const HELP: &str = "\
mdBook is not installed. To install it: cargo install mdbook --locked
(or a binary from https://github.com/rust-lang/mdBook/releases in the PATH)";

/// Makes the book, and prints where it is.
///
/// # Errors
/// If mdBook is missing or fails, or a page cannot be read or written.
pub fn run(workspace: &Workspace, args: &[String]) -> Result<ExitCode, String> {
    if !args.is_empty() {
        return Err("`book` takes no arguments".into());
    }
    match make(workspace)? {
        Some(place) => println!("{place}/index.html"),
        None => return Err(HELP.into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The step of `ci`: links always, the book where mdBook is installed.
///
/// # Errors
/// If a link leads to nothing, or the book cannot be made.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    let root = workspace.root();
    let pages = check::files(root, &[".md"])?;
    let findings = links::check(&pages, &|path| root.join(path).exists());
    let count: usize = pages.iter().map(|page| links::links(&page.text).len()).sum();
    let links = check::conclude(&findings, format!("{count} links on {} pages", pages.len()))?;
    let book = match make(workspace)? {
        Some(_) => "the book is made",
        None => "no book: mdbook is not installed",
    };
    Ok(format!("{links}; {book}"))
}

/// Makes the book and returns its directory; `None` without mdBook.
fn make(workspace: &Workspace) -> Result<Option<String>, String> {
    if Command::new("mdbook").arg("--version").output().is_err() {
        return Ok(None);
    }
    let book = workspace.target_dir()?.join("book");
    let sources = book.join("src");
    if sources.exists() {
        fs::remove_dir_all(&sources).map_err(|error| format!("{}: {error}", sources.display()))?;
    }
    arrange(workspace.root(), &sources, &repository(workspace.root())?)?;
    write(&book.join("book.toml"), SETTINGS.as_bytes())?;
    process::run(Command::new("mdbook").arg("build").arg(&book))?;
    Ok(Some(book.join("book").display().to_string()))
}

const SETTINGS: &str = "\
[book]
title = \"Anabranch\"
language = \"en\"
src = \"src\"

[output.html]
preferred-dark-theme = \"ayu\"
";

/// Where links to files that are not pages lead.
fn repository(root: &Path) -> Result<String, String> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))
        .map_err(|error| format!("Cargo.toml: {error}"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    let address = line.and_then(|rest| rest.strip_suffix('"'));
    address.map(|address| format!("{address}/blob/main")).ok_or("no repository is named".into())
}

/// Writes the pages, the pictures and the table of contents below `sources`.
fn arrange(root: &Path, sources: &Path, repository: &str) -> Result<(), String> {
    let pages = check::files(root, &[".md"])?;
    let (pages, index) = (chosen(pages), INDEX.to_owned());
    let listed = pages.iter().find(|page| page.path == index).ok_or("there is no index")?;
    write(&sources.join("SUMMARY.md"), contents(&listed.text).as_bytes())?;
    for page in &pages {
        let text = relinked(page, &pages, repository);
        write(&sources.join(place(&page.path)), text.as_bytes())?;
    }
    for picture in check::files(root, &[".svg"])? {
        if picture.path.starts_with("docs/") {
            write(&sources.join(&picture.path), picture.text.as_bytes())?;
        }
    }
    Ok(())
}

/// The pages that are in the book.
fn chosen(pages: Vec<SourceFile>) -> Vec<SourceFile> {
    let is_in =
        |path: &str| path.starts_with("docs/") || FRONT.iter().any(|(page, _)| *page == path);
    pages.into_iter().filter(|page| is_in(&page.path)).collect()
}

/// Where a page is in the book: mdBook renames every `README.md` and does not change the links to it.
fn place(path: &str) -> String {
    match path.strip_suffix("README.md") {
        Some(folder) => format!("{folder}index.md"),
        None => path.to_owned(),
    }
}

/// The text of a page with links that hold in the book: links to files that are not pages lead to the repository.
fn relinked(page: &SourceFile, pages: &[SourceFile], repository: &str) -> String {
    let mut text = page.text.clone();
    let mut outside: Vec<String> = links::links(&page.text).into_iter().map(|(_, to)| to).collect();
    outside.sort_unstable();
    outside.dedup();
    for link in outside {
        let path = link.split('#').next().unwrap_or_default();
        if links::has_scheme(&link) || path.is_empty() || path.ends_with(".svg") {
            continue;
        }
        let Some(target) = links::resolve(&page.path, path) else { continue };
        let new = match pages.iter().any(|page| page.path == target) {
            true => link.replacen(path, &place(path), 1),
            false => format!("{repository}/{target}"),
        };
        for [before, after] in [["](", ")"], ["]: ", "\n"]] {
            let old = format!("{before}{link}{after}");
            text = text.replace(&old, &format!("{before}{new}{after}"));
        }
    }
    text
}

/// The table of contents: the pages at the front, then those of the index under its headings.
fn contents(index: &str) -> String {
    let mut text = String::from("# Summary\n\n");
    let (first, others) = FRONT.split_at(1);
    for (path, title) in first {
        let _ = writeln!(text, "[{title}]({})", place(path));
    }
    let _ = writeln!(text, "\n- [Documentation]({})", place(INDEX));
    for (path, title) in others {
        let _ = writeln!(text, "- [{title}]({path})");
    }
    for Entry { heading, title, path } in entries(index) {
        match heading {
            Some(heading) => {
                let _ = writeln!(text, "\n# {heading}\n");
            }
            None => {
                let _ = writeln!(text, "- [{title}](docs/{path})");
            }
        }
    }
    text
}

/// A heading of the index, or a page that it lists.
struct Entry {
    heading: Option<String>,
    title: String,
    path: String,
}

/// Pages that the index lists: the first link of each item that leads to a page below `docs`.
fn entries(index: &str) -> Vec<Entry> {
    let (mut entries, mut seen) = (Vec::new(), Vec::new());
    let (mut text, mut path) = (String::new(), None);
    for event in Parser::new_ext(index, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => text.clear(),
            Event::Start(Tag::Link { dest_url, .. }) => {
                text.clear();
                path = Some(dest_url.into_string());
            }
            Event::Text(part) | Event::Code(part) => text.push_str(&part),
            Event::SoftBreak => text.push(' '),
            Event::End(TagEnd::Link) => {
                let path = path.take().unwrap_or_default();
                let is_page = path.ends_with(".md") && !path.starts_with("../");
                if is_page && !seen.contains(&path) {
                    seen.push(path.clone());
                    entries.push(Entry { heading: None, title: text.clone(), path });
                }
            }
            Event::End(TagEnd::Heading(pulldown_cmark::HeadingLevel::H2)) => {
                entries.push(Entry {
                    heading: Some(text.clone()),
                    title: String::new(),
                    path: String::new(),
                });
            }
            _ => {}
        }
    }
    entries
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, bytes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_becomes_the_table_of_contents() {
        let index = "# Documentation\n\nSee [elsewhere](../ARCHITECTURE.md).\n\n## Guide\n\n\
                     - [Install `it`](guide/install.md): how\n- [Two\n  lines](guide/two.md) and \
                     [install](guide/install.md)\n\n## Reference\n- [API](https://example.org)\n- [Words](words.md)\n";
        let text = contents(index);
        let tail = text.split_once("- [Changes](CHANGELOG.md)\n").unwrap().1;
        assert_eq!(
            tail,
            "\n# Guide\n\n- [Install it](docs/guide/install.md)\n- [Two lines](docs/guide/two.md)\n\n\
             # Reference\n\n- [Words](docs/words.md)\n"
        );
    }

    #[test]
    fn links_hold_in_the_book() {
        let page = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let pages = [
            page(
                "docs/a.md",
                "[b](b.md#x) [code](../crates/x.rs) ![p](p.svg) [w](https://w.org) [f](../README.md#y)\n\
                 [r]\n\n[r]: ../crates/x.rs\n",
            ),
            page("docs/b.md", ""),
            page("README.md", ""),
        ];
        assert_eq!(
            relinked(&pages[0], &pages, "https://r/blob/main"),
            "[b](b.md#x) [code](https://r/blob/main/crates/x.rs) ![p](p.svg) [w](https://w.org) \
             [f](../index.md#y)\n[r]\n\n[r]: https://r/blob/main/crates/x.rs\n"
        );
    }
}
