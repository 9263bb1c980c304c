//! The report as one self-contained page.

use std::fmt::Write;

use crate::catalogue::{self, PAPERS};
use crate::outcome::Verdict;
use crate::report::{ItemReport, Report, number, range};

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:1080px;margin:2rem auto;padding:0 1rem;color:#222}\
h1{font-size:1.7rem}h2{margin-top:3rem;border-bottom:2px solid #ddd}\
section{margin:2rem 0;padding:1rem 1.2rem;border:1px solid #ddd;border-radius:6px}\
section h3{margin:0 0 .6rem}table{border-collapse:collapse;font-size:.9rem}\
th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #eee;vertical-align:top}\
td.n{font-variant-numeric:tabular-nums;white-space:nowrap}\
.v{float:right;font-size:.85rem;padding:.1rem .6rem;border-radius:1rem;color:#fff}\
.reproduced{background:#1b7837}.differs{background:#b35806}.not-yet{background:#666}\
.out{color:#b30000;font-weight:600}.says{color:#444}figure{margin:1rem 0}svg{max-width:100%;height:auto}\
.toc td:first-child{font-family:monospace}";

/// Where results come from.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The program's version.
    pub version: String,
    /// The commit it was built from, if known.
    pub commit: String,
    /// Whether runs were shortened.
    pub quick: bool,
}

/// The page: a summary, then a section for each item with what the paper states, what was measured,
/// the bounds, the note and the figure.
pub fn page(report: &Report, origin: &Origin) -> String {
    let mut page = String::with_capacity(1 << 16);
    page.push_str("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width\">");
    let _ = write!(page, "<title>Papers reproduced</title><style>{STYLE}</style></head><body>");
    page.push_str("<h1>Papers reproduced</h1>");
    let length = if origin.quick { "quick runs" } else { "runs at the papers' scale" };
    let _ = write!(
        page,
        "<p>{} items: {} reproduced, {} differ, {} not yet. Anabranch {}, commit {}, {length}. \
         Intervals are 95 % over seeds.</p>",
        report.items.len(),
        report.count(Verdict::Reproduced),
        report.count(Verdict::Differs),
        report.count(Verdict::NotYet),
        escape(&origin.version),
        escape(&origin.commit),
    );
    contents(&mut page, report);
    for (paper, title) in PAPERS {
        let mut items = report.items.iter().filter(|item| item.paper == paper).peekable();
        if items.peek().is_some() {
            let _ = write!(page, "<h2>{}</h2>", escape(title));
        }
        for item in items {
            section(&mut page, item);
        }
    }
    page.push_str("</body></html>\n");
    page
}

fn contents(page: &mut String, report: &Report) {
    page.push_str("<table class=\"toc\"><tr><th>item</th><th>verdict</th><th>setting</th></tr>");
    for item in &report.items {
        let setting = catalogue::find(&item.id).map_or("", |item| item.scenario);
        let _ = write!(
            page,
            "<tr><td><a href=\"#{0}\">{0}</a></td><td>{1}</td><td>{2}</td></tr>",
            escape(&item.id),
            item.verdict,
            escape(setting)
        );
    }
    page.push_str("</table>");
}

fn section(page: &mut String, item: &ItemReport) {
    let (id, verdict) = (escape(&item.id), item.verdict);
    let _ = write!(
        page,
        "<section id=\"{id}\"><span class=\"v {verdict}\">{verdict}</span><h3>{id}</h3>"
    );
    if let Ok(known) = catalogue::find(&item.id) {
        let _ = write!(
            page,
            "<p>{}</p><p class=\"says\"><b>The paper:</b> {}<br><b>To show:</b> {}</p>",
            escape(known.scenario),
            escape(known.paper_says),
            escape(known.must_show)
        );
    }
    for figure in &item.figures {
        let _ = write!(page, "<figure>{}</figure>", figure.to_svg());
    }
    measured(page, item);
    if !item.note.is_empty() {
        let _ = write!(page, "<p>{}</p>", escape(&item.note));
    }
    page.push_str("</section>");
}

fn measured(page: &mut String, item: &ItemReport) {
    if item.measured.is_empty() {
        return;
    }
    page.push_str(
        "<table><tr><th>measured</th><th>mean</th><th>95 % interval</th><th>runs</th><th>bound</th></tr>",
    );
    let names = if item.order.is_empty() {
        item.measured.keys().cloned().collect()
    } else {
        item.order.clone()
    };
    for name in &names {
        let Some(measure) = item.measured.get(name) else { continue };
        let bound = item.bounds.iter().find(|bound| bound.name == *name);
        let (class, text) = match bound {
            Some(bound) if !bound.holds(measure.mean) => ("n out", range(bound)),
            Some(bound) => ("n", range(bound)),
            None => ("n", String::new()),
        };
        let interval = if measure.lo < measure.hi {
            format!("{} to {}", number(measure.lo), number(measure.hi))
        } else {
            String::new()
        };
        let _ = write!(
            page,
            "<tr><td>{}</td><td class=\"{class}\">{}</td><td class=\"n\">{interval}</td>\
             <td class=\"n\">{}</td><td class=\"{class}\">{text}</td></tr>",
            escape(name),
            number(measure.mean),
            measure.n,
        );
    }
    page.push_str("</table>");
}

/// Text as HTML shows it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;
    use crate::outcome::Outcome;

    #[test]
    fn the_page_is_self_contained_and_escaped() {
        let item = catalogue::find("mplot-tab2").unwrap();
        let mut outcome = Outcome::new();
        outcome.bounded("a < b", Measure::exact(2.0), None, 1.0);
        outcome.remark("x & y");
        let report = Report { items: vec![ItemReport::new(item, outcome)] };
        let page = page(&report, &Origin::default());
        assert!(page.contains("a &lt; b") && page.contains("x &amp; y"));
        assert!(page.contains("class=\"n out\""));
        assert!(!page.contains("http") && !page.contains("<script") && !page.contains("src="));
    }
}
