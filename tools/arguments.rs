//! Arguments shared by the commands that run over roads.

/// Longest time that a run measures, seconds.
pub const LONGEST: u64 = 3600;

/// `text`, given for `option`, as a number from 1 to `most`.
///
/// # Errors
/// The error says what was given and what is allowed.
pub fn number(option: &str, text: &str, most: u64) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("{option}: '{text}' is not accepted; allowed: 1 to {most}")),
    }
}
