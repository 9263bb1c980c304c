//! Tables that are redrawn in place on a terminal.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Cells of a bar.
pub const BAR: usize = 12;

/// Lines at the end of standard error, which is a terminal.
pub struct Rows {
    all: MultiProgress,
    /// The headings, then the rows.
    lines: Vec<ProgressBar>,
}

impl Rows {
    /// Headings and this many empty rows.
    pub fn open(headings: &str, count: usize) -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let text = ProgressStyle::with_template("{wide_msg}");
        let text = text.unwrap_or_else(|_| ProgressStyle::default_bar());
        let line = || all.add(ProgressBar::no_length().with_style(text.clone()));
        let lines: Vec<ProgressBar> = (0..=count).map(|_| line()).collect();
        if let Some(first) = lines.first() {
            first.set_message(headings.to_owned());
        }
        Rows { all, lines }
    }

    /// Adds a line of another kind below.
    pub fn add(&self, line: ProgressBar) -> ProgressBar {
        self.all.add(line)
    }

    /// Draws the rows.
    pub fn show(&self, rows: impl IntoIterator<Item = String>) {
        for (line, row) in self.lines.iter().skip(1).zip(rows) {
            line.set_message(row);
        }
    }

    /// Writes something else above the lines.
    #[cfg(target_os = "linux")]
    pub fn above(&self, write: impl FnOnce()) {
        self.all.suspend(write);
    }

    /// Removes all lines.
    pub fn clear(&self) {
        // A terminal that is gone shows nothing to clear.
        let _ = self.all.clear();
    }
}

/// Width of the longest name, at least that of the heading `title`.
pub fn name_width<'a>(title: &str, names: impl Iterator<Item = &'a str>) -> usize {
    names.map(str::len).max().unwrap_or(0).max(title.len())
}

/// A bar filled to `share`, in eighths of a cell.
pub fn bar(share: f64) -> String {
    const PARTS: [char; 8] = ['·', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f64 + 0.5) as usize;
    let mut bar = "█".repeat(eighths / 8);
    if eighths / 8 < BAR {
        bar.extend(PARTS.get(eighths % 8));
        bar.extend(core::iter::repeat_n('·', BAR - eighths / 8 - 1));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_wide_as_their_column() {
        for share in [0.0, 0.004, 0.5, 0.999, 1.0, 7.0, -1.0, f64::NAN] {
            assert_eq!(bar(share).chars().count(), BAR, "{share}");
        }
    }
}
