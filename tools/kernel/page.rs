//! The table as a page of HTML.

use std::fmt::Write;

use crate::facts::Facts;
use crate::options::Options;
use crate::table::{COLUMNS, Row, best, by_road, cells, notes, of_kernel};

const HEAD: &str = "<!doctype html>
<html lang=\"en\"><meta charset=\"utf-8\"><title>Beside the kernel's TCP and MPTCP</title>
<style>body{font:16px sans-serif;margin:2em}table{border-collapse:collapse}
td,th{padding:.2em .8em;text-align:right}td:first-child,th:first-child{text-align:left}
tbody th{padding-top:1em}.ours{font-weight:bold}small{color:#555}</style>
<h1>Beside the kernel's TCP and MPTCP</h1>
";

/// The whole page.
pub fn html(options: &Options, facts: &Facts, rows: &[Row]) -> String {
    let mut page = HEAD.to_owned();
    // Writing to a string cannot fail.
    let _ = writeln!(page, "<p>{}<br>{}", escaped(&facts.line()), escaped(&options.line()));
    let columns = COLUMNS.map(|column| format!("<th>{column}")).concat();
    let _ = writeln!(page, "<table><thead><tr><th>system<th>Mb/s{columns}<th>of the kernel's");
    for road in by_road(rows) {
        page += &body(road);
    }
    page + "</table>\n"
}

/// The lines of a road.
fn body(rows: &[Row]) -> String {
    let title = rows.first().map_or(String::new(), |row| {
        let ratio = best(rows).map_or(String::new(), |(best, ratio)| {
            format!("; anabranch {ratio:.2} of {}", best.system.name())
        });
        format!("{} <small>{}{ratio}</small>", row.road.name(), escaped(row.road.kind))
    });
    let mut text = format!("<tbody><tr><th colspan=11>{title}\n");
    for row in rows {
        let ours = if row.system == crate::systems::System::Anabranch { " class=ours" } else { "" };
        let cells = cells(row).map(|cell| format!("<td>{}", escaped(&cell))).concat();
        let notes = escaped(&notes(row).join("; "));
        let mark = if notes.is_empty() { "" } else { " *" };
        let name = row.system.name();
        let ratio = of_kernel(row, rows).map_or(String::new(), |ratio| format!("<td>{ratio:.2}"));
        let _ = writeln!(text, "<tr{ours} title=\"{notes}\"><td>{name}{mark}{cells}{ratio}");
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::rows;

    #[test]
    fn every_row_is_on_the_page_and_nothing_is_markup_that_should_not_be() {
        let options = Options::read(&["program".to_owned()]).expect("valid").expect("no help");
        let page = html(&options, &Facts::default(), &rows());
        assert_eq!(page.matches("<tr").count(), 4);
        assert!(page.contains("pairs/equal <small>steady; anabranch 1.20 of mptcp:reno</small>"));
        assert!(page.contains("<tr class=ours title=\"\"><td>anabranch<td>18.00<td>1.00 %"));
        assert!(page.contains("failed: no answer &lt;&amp;&gt;\"><td>mptcp:reno *<td>15.00"));
    }
}
