//! `send`, `recv` and `get`: files between machines.
//!
//! Either side of a connection may have the files. `get` connects and `recv` listens; `send`
//! connects, or listens for the holder of a ticket or for allowed peers. The protocol is
//! `docs/spec/transfer-0.md`.

mod accounts;
mod agreement;
pub mod args;
mod channel;
mod connect;
mod consent;
mod error;
mod had;
mod hash;
mod kept;
mod links;
mod listen;
mod listing;
mod offer;
mod partial;
mod pick;
mod progress;
mod reading;
mod report;
mod screen;
mod send;
mod session;
mod sessions;
mod setup;
mod shares;
mod source;
mod store;
mod take;
mod target;
mod terminal;
#[cfg(test)]
mod tests;
mod waiting;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use anabranch_transfer::{Name, Role, Ticket};

use crate::confine::{Needs, confine};
use crate::failure::Failure;
use crate::insight::Insight;
use crate::{keys, paths};
use args::{CommonArgs, ConnectArgs, GetArgs, ListenArgs, RecvArgs, StoreArgs};
use connect::Connecting;
use consent::Rules;
use listen::Listening;
use report::Report;
use session::Side;
use setup::Secrets;
use store::Out;
use take::Taking;
use target::{Root, USUAL};

#[cfg(any(test, feature = "testing"))]
pub use kept::keep_and_take_up;
pub use send::send;

/// Time to go on without a new byte after a connection was lost, unless another is given.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long threads that read and write files may take to end; one that waits for standard input never
/// does.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Receives what is sent here.
pub fn recv(args: &RecvArgs) -> Result<(), Failure> {
    let by_ticket = args.listen.allow.is_empty();
    let mut taking = taking(&args.store, &args.common, Vec::new())?;
    taking.keyed = !by_ticket;
    let side = Side::Takes(taking);
    let report = Report { json: args.common.json, on_stderr: is_stdout(&args.store) };
    if report.on_stderr && !by_ticket && !args.listen.once {
        return Err(Failure::usage("standard output takes one file: add --once"));
    }
    let insight = Insight::open(&args.common.insight, "recv")?;
    let out = args.store.out.as_deref().unwrap_or(Path::new(USUAL)).display().to_string();
    let words = words("recv", &args.listen, &[out]);
    let (args, common) = (&args.listen, &args.common);
    let listening = Listening { args, common, side: &side, report, insight: &insight, words };
    let mut needs = needs(&insight, args.key.as_deref(), common);
    needs.write.extend(by_ticket.then(kept::directory).flatten());
    needs.write.extend(side.directory());
    on_runtime(&insight, &needs, listening.run())
}

/// Fetches what is offered somewhere.
pub fn get(args: &GetArgs) -> Result<(), Failure> {
    let (names, ticket) = split_ticket(&args.names, true, Role::Offers)?;
    let wanted = names.into_iter().map(|text| {
        Name::new(text.trim_end_matches('/'))
            .map_err(|error| Failure::usage(format!("{text} cannot be fetched: {error}")))
    });
    let mut taking = taking(&args.store, &args.common, wanted.collect::<Result<_, _>>()?)?;
    taking.keyed = ticket.is_none();
    let side = Side::Takes(taking);
    let report = Report { json: args.common.json, on_stderr: is_stdout(&args.store) };
    let insight = Insight::open(&args.common.insight, "get")?;
    let mut needs = needs(&insight, args.key.as_deref(), &args.common);
    needs.write.extend(side.directory());
    on_runtime(&insight, &needs, async {
        let from = args.from.as_deref();
        match connecting(ticket, from, args.key.as_deref(), &args.connect, &args.common).await? {
            Some(connecting) => {
                connect::run(connecting, &side, &args.common, report, &insight).await
            }
            None => Err(Failure::usage("give a ticket, or --from HOST:PORT with --peer and --key")),
        }
    })
}

/// Words that identify a command: what it does, how long its ticket is valid, its addresses and its files.
fn words(command: &str, args: &ListenArgs, files: &[String]) -> Vec<String> {
    let absolute = |file: &String| {
        let path = std::path::absolute(file);
        path.map_or_else(|_| file.clone(), |path| path.display().to_string())
    };
    let mut words = vec![command.to_owned(), args.expires.as_secs().to_string()];
    words.extend(args.listen.iter().map(|listen| format!("on {listen}")));
    words.extend(files.iter().map(absolute));
    words
}

fn taking(args: &StoreArgs, common: &CommonArgs, wanted: Vec<Name>) -> Result<Taking, Failure> {
    let out = match &args.out {
        _ if is_stdout(args) => Out::Stdout,
        Some(path) => Out::Directory(Root::open(path).map_err(Failure::from)?),
        None => Out::Directory(Root::open_usual().map_err(Failure::from)?),
    };
    let StoreArgs { yes, allow_hidden: hidden, overwrite, .. } = *args;
    let mut taking = Taking::new(wanted, out, Rules { yes, hidden, overwrite });
    // With JSON, nobody is there to ask.
    taking.asks = !common.json && terminal::is_there();
    Ok(taking)
}

fn is_stdout(args: &StoreArgs) -> bool {
    args.out.as_deref() == Some(Path::new("-"))
}

/// Takes the ticket from among `words`: the first for `get`, the last for `send`. A file of a name
/// like that can be written as `./anabranch1…`.
fn split_ticket(
    words: &[String],
    first: bool,
    maker: Role,
) -> Result<(Vec<String>, Option<Ticket>), Failure> {
    let word = if first { words.first() } else { words.last() };
    // A ticket of which only a part was copied is not a file either.
    let is_meant = |word: &&String| {
        Ticket::is_meant(word) || (word.starts_with("anabranch1") && !Path::new(word).exists())
    };
    let Some(text) = word.filter(is_meant) else {
        return Ok((words.to_vec(), None));
    };
    let ticket = Ticket::parse(text).map_err(Failure::usage)?;
    if ticket.role != maker {
        return Err(Failure::usage(match ticket.role {
            Role::Offers => "this ticket offers files: use `anabranch get` with it",
            Role::Takes => "this ticket takes files: use `anabranch send FILE` with it",
        }));
    }
    let rest = if first { words.get(1..) } else { words.get(..words.len() - 1) };
    Ok((rest.unwrap_or_default().to_vec(), Some(ticket)))
}

/// How to connect; `None` if neither a ticket nor a host was given.
async fn connecting(
    ticket: Option<Ticket>,
    host: Option<&str>,
    key: Option<&Path>,
    args: &ConnectArgs,
    common: &CommonArgs,
) -> Result<Option<Connecting>, Failure> {
    let shared = common.preshared_key.as_deref();
    let patience = args.patience.unwrap_or(PATIENCE);
    if let Some(ticket) = ticket {
        if host.is_some() || args.peer.is_some() || key.is_some() || shared.is_some() {
            return Err(Failure::usage(
                "a ticket names the host and the keys: leave out the host, --peer, --key and \
                 --preshared-key",
            ));
        }
        let route = paths::to_addresses(&ticket.addresses, &args.paths).await?;
        let (key, peer) = (ticket.holder(), ticket.peer);
        let secrets = Secrets { key, shared: [(peer, ticket.preshared())].into() };
        // The clock of the ticket's maker decides when it expires. This machine's clock only
        // decides when to give up.
        let left = Duration::from_secs(ticket.expires.saturating_sub(listen::wall_clock()));
        let patience = args.patience.unwrap_or(PATIENCE.max(left));
        return Ok(Some(Connecting { secrets, peer, route, patience }));
    }
    let Some(host) = host else {
        if args.peer.is_some() || !args.paths.is_empty() {
            return Err(Failure::usage("--peer and --path need a host to connect to"));
        }
        return Ok(None);
    };
    let needed = || Failure::usage("a host needs --peer PUBKEY and --key FILE");
    let key = keys::load(key.ok_or_else(needed)?)?;
    let peer = args.peer.ok_or_else(needed)?;
    let secrets = Secrets { key, shared: keys::shared_with(&[peer], shared)? };
    let route = paths::to_host(host, &args.paths).await?;
    Ok(Some(Connecting { secrets, peer, route, patience }))
}

/// Rights that every transfer needs: its secrets, if it has any, and the directory of its recordings.
fn needs(insight: &Insight, key: Option<&Path>, common: &CommonArgs) -> Needs {
    Needs::files([key, common.preshared_key.as_deref()], insight.directory())
}

/// Drops the privileges that are not needed, and runs `work` to its end on a runtime of its own.
fn on_runtime(
    insight: &Insight,
    needs: &Needs,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    confine(needs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let result = runtime.block_on(async {
        ignore_file_size_signal();
        work.await
    });
    runtime.shutdown_timeout(SHUTDOWN);
    insight.finish();
    result
}

/// Makes a file beyond the size limit (`ulimit -f`) an error like a full disk, instead of the end of the
/// process.
#[cfg(unix)]
fn ignore_file_size_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    /// SIGXFSZ on Linux and the BSDs, macOS included.
    const SIGXFSZ: i32 = 25;
    // The handler stays in place when the stream of signals is dropped.
    drop(signal(SignalKind::from_raw(SIGXFSZ)));
}

#[cfg(not(unix))]
fn ignore_file_size_signal() {}
