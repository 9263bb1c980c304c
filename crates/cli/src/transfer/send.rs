//! `send`: offers files to the maker of a ticket, to a named machine, or to the holder of a new ticket.

use std::path::{Path, PathBuf};

use anabranch_transfer::{Name, Role};

use super::args::SendArgs;
use super::listen::Listening;
use super::listing::{Amounts, line};
use super::pick::Pick;
use super::report::Report;
use super::session::Side;
use super::source::{Offer, Source};
use super::{connect, connecting, kept, needs, on_runtime, split_ticket, words};
use crate::failure::Failure;
use crate::insight::Insight;
use crate::limit::Limit;
use crate::output;

/// Sends files, or tells which would be sent.
///
/// # Errors
/// When something that was named cannot be read, the transfer fails, or something was skipped that
/// nobody excluded.
pub fn send(args: &SendArgs) -> Result<(), Failure> {
    let (files, ticket) = split_ticket(&args.files, false, Role::Takes)?;
    if files.is_empty() {
        return Err(Failure::usage("name a file to send before the ticket"));
    }
    Name::new(args.name.as_str())
        .map_err(|error| Failure::usage(format!("--name {}: {error}", args.name)))?;
    for file in files.iter().filter(|file| *file != "-") {
        // A dangling link exists, too, and is reported later as a link.
        if let Err(error) = std::fs::symlink_metadata(file) {
            return Err(Failure::cannot_read(Path::new(file), &error));
        }
    }
    let pick = Pick::new(&args.exclude, args.links).map_err(Failure::usage)?;
    let source = Source::new(files, args.name.clone(), pick);
    // Files that cannot be read are reported before anybody connects.
    let offer = source.collect().map_err(Failure::from)?;
    if offer.manifest.is_empty() {
        return Err(Failure::usage("nothing is left to send; see --exclude and --links"));
    }
    let report = Report { json: args.common.json, on_stderr: false };
    for skipped in &offer.skipped {
        eprintln!("anabranch: not sent: {} is {}", skipped.path.display(), skipped.why);
        report.skipped(skipped);
    }
    if args.dry_run {
        list(&offer, report)?;
        return complete(&offer, "would be sent");
    }
    let side = Side::Offers(source, args.bwlimit.map(Limit::new));
    let insight = Insight::open(&args.common.insight, "send")?;
    let listens = ticket.is_none() && args.to.is_none();
    let standing = !args.listen.allow.is_empty();
    let mut needs = needs(&insight, args.listen.key.as_deref(), &args.common);
    needs.write.extend((listens && !standing).then(kept::directory).flatten());
    needs.read.extend(source_paths(&args.files, standing));
    on_runtime(&insight, &needs, async {
        let (host, key) = (args.to.as_deref(), args.listen.key.as_deref());
        match connecting(ticket, host, key, &args.connect, &args.common).await? {
            Some(connecting) => {
                if !args.listen.listen.is_empty() || !args.listen.allow.is_empty() {
                    return Err(Failure::usage(
                        "--listen and --allow are for sending without a ticket",
                    ));
                }
                connect::run(connecting, &side, &args.common, report, &insight).await
            }
            None => listening(args, &side, report, &insight).run().await,
        }
    })?;
    // Only a side that ends after one transfer tells by its exit code whether all was sent.
    if standing && !args.listen.once { Ok(()) } else { complete(&offer, "was sent") }
}

fn listening<'a>(
    args: &'a SendArgs,
    side: &'a Side,
    report: Report,
    insight: &'a Insight,
) -> Listening<'a> {
    let mut words = words("send", &args.listen, &args.files);
    words.extend(args.exclude.iter().map(|glob| format!("without {glob}")));
    words.extend(args.links.then(|| "links".to_owned()));
    Listening { args: &args.listen, common: &args.common, side, report, insight, words }
}

/// Prints what would be sent.
fn list(offer: &Offer, report: Report) -> Result<(), Failure> {
    let (mut amounts, mut text) = (Amounts::default(), String::new());
    for entry in offer.manifest.entries() {
        amounts.add(&entry);
        if report.json {
            report.would_send(&entry)?;
        } else {
            text.push_str(&line(&entry));
            text.push('\n');
        }
    }
    if report.json {
        return report.dry_run(amounts);
    }
    output::print(&format!("{text}Would send {}\n", amounts.text()))
}

/// Fails if something was skipped, so that the exit code tells scripts.
fn complete(offer: &Offer, sent: &str) -> Result<(), Failure> {
    if offer.skipped.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("all else {sent}; what is not sent is listed above")))
}

/// Paths that have to be readable in order to send `files`. Programs replace a file by writing another one beside it
/// and renaming that, so the directory of a file that stays on offer has to be readable too.
fn source_paths(files: &[String], standing: bool) -> impl Iterator<Item = PathBuf> {
    let real = files.iter().filter_map(|file| Path::new(file).canonicalize().ok());
    real.map(move |path| match path.parent() {
        Some(parent) if standing && path.is_file() => parent.to_owned(),
        _ => path,
    })
}
