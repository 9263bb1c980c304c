//! The page that shows all figures of a results directory.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use anabranch_plot::escape_html;

/// The page's name.
pub(super) const INDEX: &str = "index.html";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1400px;padding:1rem;\
color:#222;background:#fff}small{color:#666}nav ul{columns:24rem;padding-left:1.2rem}main{display:grid;gap:1.5rem;\
grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr))}figure{margin:0;border:1px solid #ddd;\
padding:.5rem}img{width:100%;height:auto}figcaption{font-size:.85rem;overflow-wrap:anywhere}";

/// A figure in the directory.
#[derive(Debug, PartialEq)]
struct Shown {
    file: String,
    /// Title of the figure, escaped as in the SVG.
    title: String,
    /// Files of the figure in other formats.
    others: Vec<String>,
}

/// Formats in which a figure may exist besides SVG.
const OTHERS: [&str; 2] = ["png", "pdf"];

/// Writes the page of all figures in `directory`, those of earlier calls too.
///
/// # Errors
/// When the directory cannot be read or the page not be written.
pub(super) fn write(directory: &Path, scenario: &str) -> io::Result<()> {
    let mut figures = Vec::new();
    for item in fs::read_dir(directory)? {
        let Ok(file) = item?.file_name().into_string() else { continue };
        if file.ends_with(".svg") {
            // A figure that cannot be read is shown under its name.
            let svg = fs::read_to_string(directory.join(&file)).unwrap_or_default();
            let title = title(&svg).unwrap_or_else(|| escape_html(&file));
            let others = OTHERS.map(|format| Path::new(&file).with_extension(format));
            let made = others.iter().filter(|other| directory.join(other).is_file());
            let others = made.map(|other| other.to_string_lossy().into_owned()).collect();
            figures.push(Shown { file, title, others });
        }
    }
    figures.sort_by_key(|shown| order(&shown.file));
    anabranch_files::write(&directory.join(INDEX), page(scenario, &figures).as_bytes(), 0o666)
}

/// The scenario's own figures first, by their numbers; then by name, numbers in it by their values.
fn order(file: &str) -> (bool, Vec<(u64, String)>) {
    let own = file
        .strip_prefix("figure-")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let mut parts = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, number) = rest.split_at(end);
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(digits);
        parts.push((0, text.to_owned()));
        parts.push((number.parse().unwrap_or(0), String::new()));
        rest = after;
    }
    (!own, parts)
}

/// The title of an SVG, as it is escaped there.
fn title(svg: &str) -> Option<String> {
    let (_, rest) = svg.split_once("<title>")?;
    let (title, _) = rest.split_once('<')?;
    Some(title.replace('>', "&gt;").replace('"', "&quot;")).filter(|title| !title.trim().is_empty())
}

fn page(scenario: &str, figures: &[Shown]) -> String {
    let scenario = escape_html(scenario);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{scenario}</title>\n\
         <style>{STYLE}</style>\n<h1>{scenario}</h1>\n<nav><ul>\n"
    );
    for Shown { file, title, .. } in figures {
        let file = escape_html(file);
        let _ = writeln!(html, "<li><a href=\"#{file}\">{title}</a> <small>{file}</small>");
    }
    html.push_str("</ul></nav>\n<main>\n");
    for Shown { file, title, others } in figures {
        let file = escape_html(file);
        let link = |other: &String| {
            let other = escape_html(other);
            format!(", <a href=\"{other}\">{other}</a>")
        };
        let others: String = others.iter().map(link).collect();
        let _ = writeln!(
            html,
            "<figure id=\"{file}\"><a href=\"{file}\"><img src=\"{file}\" alt=\"{title}\" \
             loading=\"lazy\"></a><figcaption>{title} (<a href=\"{file}\">{file}</a>{others})</figcaption></figure>"
        );
    }
    html + "</main>\n</html>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_order_and_nothing_breaks_the_page() {
        let dir = tempfile::tempdir().unwrap();
        let svg = |title: &str| format!("<svg ><title>{title}</title></svg>");
        for (file, text) in [
            ("goodput-point10.svg", svg("Goodput &lt;10&gt; \"q")),
            ("goodput-point9.svg", svg("Goodput 9")),
            ("figure-10.svg", svg("Ten")),
            ("figure-2.svg", svg("Two")),
            ("a_empty.svg", String::new()),
            ("notes.txt", svg("not a figure")),
            ("figure-2.pdf", String::new()),
            ("figure-10.png", String::new()),
            ("figure-10.pdf", String::new()),
            ("goodput-point11.png", String::new()),
        ] {
            fs::write(dir.path().join(file), text).unwrap();
        }
        write(dir.path(), "a <b> & c").unwrap();
        let html = fs::read_to_string(dir.path().join(INDEX)).unwrap();
        let shown: Vec<&str> =
            html.split("<img src=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let expected = [
            "figure-2.svg",
            "figure-10.svg",
            "a_empty.svg",
            "goodput-point9.svg",
            "goodput-point10.svg",
        ];
        assert_eq!(shown, expected);
        assert_eq!(html.matches("<li><a href=\"#").count(), 5);
        assert!(html.contains("<h1>a &lt;b&gt; &amp; c</h1>") && html.contains(">a_empty.svg</a>"));
        assert!(html.contains("alt=\"Goodput &lt;10&gt; &quot;q\""), "{html}");
        // Only files that exist are linked.
        let links = |file: &str| html.matches(&format!("<a href=\"{file}\">")).count();
        let files = ["figure-2.pdf", "figure-10.png", "figure-10.pdf"].map(links);
        assert_eq!((files, links("figure-2.png"), links("goodput-point11.png")), ([1; 3], 0, 0));
        // Writing the page again gives the same page.
        write(dir.path(), "a <b> & c").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join(INDEX)).unwrap(), html);
    }
}
