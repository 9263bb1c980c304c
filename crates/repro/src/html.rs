//! The report as one self-contained page.

use std::fmt::Write;

use anabranch_plot::escape_html;
use anabranch_sim::scenario::Finding;
use anabranch_sim::stats;

use crate::catalogue::{self, PAPERS};
use crate::outcome::{Setting, Verdict};
use crate::report::{Bound, ItemReport, Report, number, range};

const STYLE: &str = include_str!("page.css");

/// The provenance of the results.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// The program's version.
    pub version: String,
    /// The commit that the program was built from, if known.
    pub commit: String,
    /// Whether the runs were shortened.
    pub quick: bool,
}

/// The page: a summary, the meaning of the verdicts, then a section for each item with the paper's
/// values beside the measured ones and the settings of the runs.
pub fn page(report: &Report, origin: &Origin) -> String {
    let mut page = String::with_capacity(1 << 16);
    page.push_str("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    let _ = write!(page, "<title>Papers reproduced</title><style>{STYLE}</style></head><body>");
    let length = if origin.quick { "Quick runs" } else { "Runs at the papers’ scale" };
    let _ = write!(
        page,
        "<h1>Papers reproduced</h1><p class=\"sum\">{} items: {}.</p>\
         <p>{length} by Anabranch {}, commit {}. Values are means over seeds with their 95 % intervals.</p>",
        report.items.len(),
        report.sum(),
        escape_html(&origin.version),
        escape_html(origin.commit.get(..12).unwrap_or(&origin.commit)),
    );
    page.push_str(LEGEND);
    for (paper, title) in PAPERS {
        let items: Vec<_> = report.items.iter().filter(|item| item.paper == paper).collect();
        if !items.is_empty() {
            let _ = write!(page, "<h2>{}</h2>", escape_html(title));
            contents(&mut page, &items);
        }
        for item in items {
            section(&mut page, item, origin.quick);
        }
    }
    page.push_str("</body></html>\n");
    page
}

const LEGEND: &str = "<dl class=\"legend\">\
<dt><span class=\"v reproduced\">reproduced</span></dt>\
<dd>every claim holds, with its whole interval</dd>\
<dt><span class=\"v open\">open</span></dt>\
<dd>the means are within their bounds, an interval is not: more seeds would tell</dd>\
<dt><span class=\"v differs\">differs</span></dt>\
<dd>a claim fails, and runs without the suspected cause show why</dd>\
<dt><span class=\"v not-yet\">not-yet</span></dt>\
<dd>not checked, or a claim fails and why is not shown</dd></dl>";

fn contents(page: &mut String, items: &[&ItemReport]) {
    page.push_str("<ul class=\"toc\">");
    for item in items {
        let _ = write!(
            page,
            "<li><span class=\"v {0}\">{0}</span><a href=\"#{1}\">{2}</a> <small>{3}</small></li>",
            item.verdict,
            escape_html(&item.id),
            escape_html(heading(item)),
            escape_html(&source(item)),
        );
    }
    page.push_str("</ul>");
}

/// Title of the item for readers who do not know the paper.
fn heading(item: &ItemReport) -> &str {
    let title = &item.outcome.published.title;
    match catalogue::find(&item.id) {
        Ok(known) if title.is_empty() => known.scenario,
        _ => title,
    }
}

/// Where in the paper the item is: the source that it states, or one derived from its identifier.
/// `mplot-fig11` is Figure 11.
fn source(item: &ItemReport) -> String {
    let source = &item.outcome.published.source;
    if !source.is_empty() {
        return source.clone();
    }
    let name = item.id.split_once('-').map_or("", |(_, name)| name);
    for (word, kind) in [("fig", "Figure"), ("tab", "Table"), ("thm", "Theorem")] {
        if let Some(number) = name.strip_prefix(word) {
            return format!("{kind} {number}");
        }
    }
    name.to_owned()
}

fn section(page: &mut String, item: &ItemReport, quick: bool) {
    let (id, verdict) = (escape_html(&item.id), item.verdict);
    let _ = write!(
        page,
        "<section id=\"{id}\"><span class=\"v {verdict}\">{verdict}</span><h3>{}</h3>\
         <p class=\"where\">{} · <code>{id}</code></p>",
        escape_html(heading(item)),
        escape_html(&source(item))
    );
    let _ = write!(page, "<p><b>The paper:</b> {}</p>", escape_html(&item.paper_says));
    if item.outcome.published.title.is_empty()
        && let Ok(known) = catalogue::find(&item.id)
    {
        let _ = write!(page, "<p><b>To show:</b> {}</p>", escape_html(known.must_show));
    }
    for figure in &item.outcome.figures {
        let _ = write!(
            page,
            "<figure class=\"wide\">{}</figure><figure class=\"narrow\">{}</figure>",
            figure.to_svg(),
            figure.to_narrow_svg()
        );
    }
    let findings = &item.outcome.findings;
    let (judged, others): (Vec<_>, Vec<_>) = findings.iter().partition(|f| f.verdict.is_some());
    let (ablations, claims): (Vec<_>, Vec<_>) = judged.into_iter().partition(|f| f.is_ablation);
    table(page, "What must hold", &claims);
    if !item.note.is_empty() {
        let _ = write!(page, "<p>{}</p>", escape_html(&item.note));
    }
    let why = if verdict == Verdict::Differs {
        "Why it differs"
    } else {
        "What would explain a difference"
    };
    table(page, why, &ablations);
    if !others.is_empty() {
        let _ = write!(page, "<details><summary>{} more values</summary>", others.len());
        table(page, "", &others);
        page.push_str("</details>");
    }
    settings(page, item, quick);
    page.push_str("</section>");
}

fn table(page: &mut String, title: &str, findings: &[&Finding]) {
    if findings.is_empty() {
        return;
    }
    let has = |part: fn(&Finding) -> bool| findings.iter().any(|finding| part(finding));
    let (paper, judged) = (has(|f| f.paper.is_some()), has(|f| f.verdict.is_some()));
    if !title.is_empty() {
        let _ = write!(page, "<h4>{title}</h4>");
    }
    page.push_str("<table><thead><tr><th>what</th>");
    for (shown, head) in
        [(paper, "paper"), (true, "here"), (judged, "must be"), (judged, "verdict")]
    {
        if shown {
            let _ = write!(page, "<th>{head}</th>");
        }
    }
    page.push_str("</tr></thead><tbody>");
    for finding in findings {
        row(page, finding, paper, judged);
    }
    page.push_str("</tbody></table>");
}

fn row(page: &mut String, finding: &Finding, paper: bool, judged: bool) {
    let mut name = escape_html(&finding.name);
    if let Some(reading) = &finding.reading {
        let _ = write!(name, " <small>(reading {})</small>", escape_html(reading));
    }
    let _ = write!(page, "<tr><td>{name}</td>");
    let mut cell = |head: &str, text: &str, class: &str| {
        let _ = write!(page, "<td class=\"n {class}\" data-head=\"{head}\">{text}</td>");
    };
    if paper {
        cell("paper", &finding.paper.as_deref().map_or_else(String::new, escape_html), "");
    }
    cell("here", &measured(finding), "");
    if judged {
        cell("must be", &range(&Bound::of(finding)), "");
        let (word, class) = match finding.verdict {
            Some(stats::Verdict::Open { seeds: Some(seeds) }) => {
                (format!("open; about {seeds} seeds would settle it"), "maybe")
            }
            Some(stats::Verdict::Open { seeds: None }) => ("open".to_owned(), "maybe"),
            Some(stats::Verdict::Fails) => ("fails".to_owned(), "out"),
            Some(stats::Verdict::Holds) => ("holds".to_owned(), ""),
            None => (String::new(), ""),
        };
        cell("verdict", &word, class);
    }
    page.push_str("</tr>");
}

/// The mean and interval, such as `5.28 <small>5.22 to 5.33</small>`.
fn measured(finding: &Finding) -> String {
    let Some(estimate) = &finding.estimate else { return "not measured".to_owned() };
    let mut text = number(estimate.mean);
    if let Some((lo, hi)) = estimate.interval.filter(|(lo, hi)| lo < hi) {
        let _ = write!(text, " <small>{} to {}</small>", number(lo), number(hi));
    }
    text
}

fn settings(page: &mut String, item: &ItemReport, quick: bool) {
    if item.outcome.findings.is_empty() {
        return;
    }
    let quick = if quick { " --quick" } else { "" };
    let command = |text: &str| format!("<pre>{}</pre>", escape_html(text));
    page.push_str("<details class=\"run\"><summary>How this was made</summary>");
    if item.outcome.settings.is_empty() {
        page.push_str("<p>Computed from the paper’s formulas.</p>");
    }
    for Setting { file, seeds, points, duration, flows } in &item.outcome.settings {
        let counted = |n: usize, noun: &str| {
            if n == 1 { format!("one {noun}") } else { format!("{n} {noun}s") }
        };
        let _ = write!(
            page,
            "<p><code>{}</code>: {}, {} each, runs of {}.</p><ul>",
            escape_html(file),
            counted(*points, "point"),
            counted(*seeds, "seed"),
            escape_html(duration)
        );
        for flow in flows {
            let _ = write!(page, "<li><code>{}</code></li>", escape_html(flow));
        }
        let _ = write!(page, "</ul>{}", command(&format!("anabranch sim run {file}{quick}")));
    }
    let _ = write!(
        page,
        "<p>All of this item:</p>{}</details>",
        command(&format!("anabranch repro {}{quick}", item.id))
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use anabranch_sim::stats::Estimate;

    #[test]
    fn the_page_is_self_contained_and_escaped() {
        let item = catalogue::find("mplot-tab2").unwrap();
        let mut outcome = Outcome::new();
        outcome.bounded("a < b", Estimate::exact(2.0), None, 1.0);
        outcome.paper("> 3");
        outcome.remark("x & y");
        let report = Report { items: vec![ItemReport::new(item, outcome)] };
        let page = page(&report, &Origin { quick: true, ..Origin::default() });
        assert!(page.contains("a &lt; b") && page.contains("x &amp; y"));
        assert!(page.contains("data-head=\"paper\">&gt; 3</td>"));
        assert!(page.contains("class=\"n out\"") && page.contains("Table 2"));
        assert!(page.contains("anabranch repro mplot-tab2 --quick"));
        assert!(!page.contains("http") && !page.contains("<script") && !page.contains("src="));
    }
}
