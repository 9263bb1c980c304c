//! Evaluates `{…}` inside texts: variables and arithmetic with them.

use std::collections::BTreeMap;

use super::formula::{Formula, Grammar, Name, Refusal};

/// The values of the names that may occur inside braces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bindings(BTreeMap<String, Binding>);

#[derive(Clone, Debug, PartialEq)]
enum Binding {
    Number(f64),
    Text(String),
}

impl Bindings {
    /// Binds `name` to a number.
    pub(super) fn number(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), Binding::Number(value));
    }

    /// Binds `name` to a text. A text that is a number can be used in arithmetic.
    pub(super) fn text(&mut self, name: &str, value: &str) {
        let binding = match value.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Binding::Number(number),
            _ => Binding::Text(value.to_owned()),
        };
        self.0.insert(name.to_owned(), binding);
    }

    /// A copy of the bindings in which `name` is bound to `value`.
    pub(super) fn with(&self, name: &str, value: f64) -> Bindings {
        let mut more = self.clone();
        more.number(name, value);
        more
    }

    /// `text` with every `{…}` replaced by its value.
    ///
    /// # Errors
    /// When a part of `text` is not understood. The error says which part it is and what is allowed
    /// there.
    pub(super) fn expand(&self, text: &str) -> Result<String, Refusal> {
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((inside, behind)) = after.split_once('}') else {
                return Err(("a '{' without its '}'".to_owned(), EXAMPLE.to_owned()));
            };
            result.push_str(before);
            result.push_str(&self.evaluate(inside.trim())?);
            rest = behind;
        }
        result.push_str(rest);
        Ok(result)
    }

    fn evaluate(&self, inside: &str) -> Result<String, Refusal> {
        if let Some(Binding::Text(text)) = self.0.get(inside) {
            return Ok(text.clone());
        }
        let lookup = |name: &Name| match self.0.get(&name.name) {
            Some(Binding::Number(number)) => Ok(*number),
            Some(Binding::Text(text)) => {
                Err((format!("'{}' is '{text}', not a number", name.name), EXAMPLE.to_owned()))
            }
            None => Err((format!("there is no variable '{}'", name.name), self.names())),
        };
        let no_call = |name: &str, _: &[Formula]| {
            Err((format!("there is no function '{name}'"), EXAMPLE.to_owned()))
        };
        let value = Formula::parse(inside, &GRAMMAR)
            .map_err(|(given, allowed)| {
                // Show the part in messages with its braces, as in the text.
                (given.replace(&format!("in '{inside}'"), &format!("in '{{{inside}}}'")), allowed)
            })?
            .value(&lookup, &no_call)?;
        if !value.is_finite() {
            return Err((format!("'{{{inside}}}' has no finite value"), EXAMPLE.to_owned()));
        }
        Ok(value.to_string())
    }

    /// Binds `name` to a text that is never treated as a number.
    pub(super) fn word(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), Binding::Text(value.to_owned()));
    }

    /// The text bound to `name`; `None` if it is bound to a number or not at all.
    pub(super) fn find_text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)? {
            Binding::Text(text) => Some(text),
            Binding::Number(_) => None,
        }
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        if names.is_empty() { "no variable is defined here".to_owned() } else { names.join(", ") }
    }
}

const EXAMPLE: &str = "{NAME}, numbers, + - * / ( ), and min, max, floor, ceil, round, \
                       such as {10/M}";
const GRAMMAR: Grammar = Grammar { functions: &[], pins: false, example: EXAMPLE };

#[cfg(test)]
mod tests {
    use super::*;

    fn bindings() -> Bindings {
        let mut bindings = Bindings::default();
        bindings.number("M", 4.0);
        bindings.text("D", "6");
        bindings.text("model", "markov:5%/35%@250ms");
        bindings
    }

    #[test]
    fn variables_and_arithmetic_are_replaced() {
        let expand = |text: &str| bindings().expand(text).expect(text);
        assert_eq!(expand("{10/M}mbit"), "2.5mbit");
        assert_eq!(expand("p{M}-{M + 1}"), "p4-5");
        assert_eq!(expand("{20*D}ms"), "120ms");
        assert_eq!(expand("{ceil(M/3)}"), "2");
        assert_eq!(expand("{min(M, 3) * (2 - -1)}"), "9");
        assert_eq!(expand("{model}"), "markov:5%/35%@250ms");
        assert_eq!(expand("plain"), "plain");
    }

    #[test]
    fn nonsense_is_named() {
        let refuse = |text: &str| bindings().expand(text).expect_err(text);
        assert_eq!(
            refuse("{N}mbit"),
            ("there is no variable 'N'".to_owned(), "D, M, model".to_owned())
        );
        assert_eq!(refuse("{M").0, "a '{' without its '}'");
        assert_eq!(refuse("{M/0}").0, "'{M/0}' has no finite value");
        assert_eq!(refuse("{model*2}").0, "'model' is 'markov:5%/35%@250ms', not a number");
        assert_eq!(refuse("{M 2}").0, "'2' in '{M 2}' is not understood");
        assert_eq!(refuse("{sqrt(M)}").0, "there is no function 'sqrt'");
        assert_eq!(refuse("{}").0, "'' where a number or a name should be");
        let deep = format!("{{{}1{}}}", "(".repeat(50), ")".repeat(50));
        assert_eq!(refuse(&deep).0, "an expression nested too deeply");
    }
}
