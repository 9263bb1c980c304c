//! Checks that links between pages lead to a file of the repository and to a heading of a page.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{Finding, SourceFile};

/// Every link and picture of `pages` that leads to nothing. `exists` tells whether a file or directory is there, by its
/// path from the top directory. Links that begin with a scheme, as `https:`, are not followed.
pub fn check(pages: &[SourceFile], exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut findings = Vec::new();
    for page in pages {
        for (line, link) in links(&page.text) {
            if let Some(what) = fault(&page.path, &link, &anchors, exists) {
                findings.push(Finding { path: page.path.clone(), line, what });
            }
        }
    }
    findings
}

/// What is wrong with a link of the page `from`, if anything.
fn fault(
    from: &str,
    link: &str,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    exists: &dyn Fn(&str) -> bool,
) -> Option<String> {
    if has_scheme(link) {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, at)| (path, Some(at)));
    let target = if path.is_empty() { Some(from.to_owned()) } else { resolve(from, path) };
    let Some(target) = target else {
        return Some(format!("`{link}` leads out of the repository"));
    };
    if !exists(&target) {
        return Some(format!("`{link}` leads to {target}, which is not there"));
    }
    let (anchor, headings) = (anchor?, anchors.get(target.as_str())?);
    (!headings.contains(anchor)).then(|| format!("`{link}`: {target} has no heading `#{anchor}`"))
}

/// Whether a link names a scheme, as `https:` or `mailto:`.
pub fn has_scheme(link: &str) -> bool {
    let scheme = link.split_once(':').map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// The path from the top directory of what `link` names on the page `from`; `None` if it leads out of it.
pub fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The links and pictures of a page, each with its line.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let line = text.get(..range.start).unwrap_or_default().matches('\n').count() + 1;
            links.push((line, dest_url.into_string()));
        }
    }
    links
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = slug(&heading.take().unwrap_or_default());
                let mut copies = (1..).map(|number| format!("{name}-{number}"));
                let mut unique = name.clone();
                while !anchors.insert(unique.clone()) {
                    unique = copies.next().unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    anchors
}

/// A heading's anchor.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_alphanumeric() => Some(c),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    fn found(text: &str) -> Vec<String> {
        let other =
            page("docs/other.md", "# Two words: `code`, and more\n\n## Again\n\n## Again\n");
        let exists =
            |path: &str| ["docs/a.md", "docs/other.md", "README.md", "docs"].contains(&path);
        let findings = check(&[page("docs/a.md", text), other], &exists);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let fine = "# Here\n\n[a](other.md) [b](../README.md) [c](#here) [d](other.md#again-1)\n\
                    [over two\nlines](other.md#two-words-code-and-more) [e](https://example.org/#x)\n\
                    [f](mailto:a@example.org) [folder](../docs/)\n\n```\n[code](no.md)\n```\n`[code](no.md)`\n";
        assert_eq!(found(fine), [""; 0]);
    }

    #[test]
    fn links_that_lead_nowhere_are_named_with_their_line() {
        let lost = "# Here\n[a](missing.md)\n\n[b](#there) ![c](picture.svg)\n[d](../../out.md)\n[e][f]\n\n\
                    | t |\n|---|\n| [g](other.md#again-2) |\n\n[f]: gone.md\n";
        assert_eq!(
            found(lost),
            [
                "docs/a.md:2: `missing.md` leads to docs/missing.md, which is not there",
                "docs/a.md:4: `#there`: docs/a.md has no heading `#there`",
                "docs/a.md:4: `picture.svg` leads to docs/picture.svg, which is not there",
                "docs/a.md:5: `../../out.md` leads out of the repository",
                "docs/a.md:6: `gone.md` leads to docs/gone.md, which is not there",
                "docs/a.md:10: `other.md#again-2`: docs/other.md has no heading `#again-2`",
            ]
        );
    }

    #[test]
    fn anchors_are_those_of_github() {
        assert_eq!(slug("Parts of a sweep"), "parts-of-a-sweep");
        assert_eq!(slug("GF(2^8), 1.5 µs – done"), "gf28-15-µs--done");
    }
}
