//! Help texts with paragraphs as wide as the terminal.

use clap::Command;

/// Joins the lines of the paragraphs after the options, here and in all commands below, so that clap wraps
/// them as wide as the terminal is.
pub fn flowing(command: Command) -> Command {
    let text = command.get_after_help().map(|text| paragraphs(&text.to_string()));
    let command = command.mut_subcommands(flowing);
    match text {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// The text with each paragraph in one line. Indented lines, such as examples, stay as they are, and so do their headings.
fn paragraphs(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.split('\n').peekable();
    while let Some(line) = lines.next() {
        joined.push_str(line);
        let goes_on = is_prose(line) && !line.ends_with(':');
        match lines.peek() {
            Some(next) if goes_on && is_prose(next) => joined.push(' '),
            Some(_) => joined.push('\n'),
            None => {}
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "\nOne line\nand its end.\n\nExamples:\n  one\n  two\nExit codes:\n  0  done\n";
        let joined = "\nOne line and its end.\n\nExamples:\n  one\n  two\nExit codes:\n  0  done\n";
        assert_eq!(paragraphs(text), joined);
    }

    #[test]
    fn commands_below_flow_too() {
        let below = Command::new("below").after_help("One\ntwo");
        let command = flowing(Command::new("above").after_help("a\nb").subcommand(below));
        let help = |command: &Command| command.get_after_help().unwrap().to_string();
        assert_eq!(help(&command), "a b");
        assert_eq!(help(command.find_subcommand("below").unwrap()), "One two");
    }
}
