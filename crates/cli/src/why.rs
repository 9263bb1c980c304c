//! `why`: explains a recording in plain language.

mod cause;
mod events;
mod qlog;
mod read;
mod render;
mod summary;

#[cfg(test)]
mod tests;

use crate::args::WhyArgs;
use crate::failure::Failure;
use crate::output;
use crate::record::{Header, Line};
use read::Reader;
use summary::Summary;

/// Explains the recording in `args.file`.
///
/// # Errors
/// When the file cannot be read or is no recording.
pub fn run(args: &WhyArgs) -> Result<(), Failure> {
    let mut reader = Reader::open(&args.file)?;
    if args.events {
        return print_events(&mut reader, args.json);
    }
    let mut summary = Summary::new(reader.header());
    while let Some(line) = reader.next_line()? {
        summary.add(reader.header(), &line);
    }
    let report = summary.finish(reader.header(), reader.is_cut());
    if args.json { output::print_json(&report) } else { output::print(&render::text(&report)) }
}

/// Output is printed in pieces of about this many bytes.
const PIECE: usize = 1 << 16;

fn print_events(reader: &mut Reader, json: bool) -> Result<(), Failure> {
    let mut text = String::new();
    while let Some(line) = reader.next_line()? {
        text += &event_text(reader.header(), &line, json)?;
        text.push('\n');
        if text.len() >= PIECE {
            output::print(&text)?;
            text.clear();
        }
    }
    output::print(&text)
}

fn event_text(header: &Header, line: &Line, json: bool) -> Result<String, Failure> {
    if json {
        return serde_json::to_string(line).map_err(Failure::failed);
    }
    Ok(events::describe(header, line))
}
