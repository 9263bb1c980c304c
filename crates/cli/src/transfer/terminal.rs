//! Asks the person at the terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::OnceLock;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, mpsc};

/// Lines that wait to be read at most.
const WAITING: usize = 16;

/// Answer of the person at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// Show everything, and ask again.
    List,
}

/// Whether somebody can be asked: standard input and error are a terminal.
pub(super) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The lines of standard input. One thread reads them until the process ends: a question can be cancelled, but
/// reading a line cannot.
static LINES: OnceLock<Mutex<mpsc::Receiver<String>>> = OnceLock::new();

fn lines() -> &'static Mutex<mpsc::Receiver<String>> {
    LINES.get_or_init(|| {
        let (sender, receiver) = mpsc::channel(WAITING);
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Mutex::new(receiver)
    })
}

/// Asks one question at a time. Only what is typed after the question counts as an answer. The end of input is a no.
pub(super) async fn ask(mut text: impl FnMut(bool) -> String) -> bool {
    let mut lines = lines().lock().await;
    // Drops what was typed before, in the terminal's buffer and in the thread's queue.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    while lines.try_recv().is_ok() {}
    eprint!("{}", text(false));
    loop {
        eprint!("Receive all of it? [y/n/l] ");
        // A terminal that is gone will end the input too.
        let _ = io::stderr().flush();
        let Some(line) = lines.recv().await else { return false };
        match answer(&line) {
            Some(Answer::Yes) => return true,
            Some(Answer::No) => return false,
            Some(Answer::List) => eprint!("{}", text(true)),
            None => {}
        }
    }
}

fn answer(line: &str) -> Option<Answer> {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Yes),
        "n" | "no" => Some(Answer::No),
        "l" | "list" => Some(Answer::List),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_is_an_answer() {
        assert_eq!([answer("y"), answer(" YES\r")], [Some(Answer::Yes); 2]);
        assert_eq!([answer("n"), answer("No")], [Some(Answer::No); 2]);
        assert_eq!(answer("l"), Some(Answer::List));
        for unclear in ["", "yy", "j", "y n", "\u{4}"] {
            assert_eq!(answer(unclear), None, "{unclear}");
        }
    }
}
