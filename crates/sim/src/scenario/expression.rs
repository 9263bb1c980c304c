//! `{…}` inside texts: names of variables, and arithmetic on them.

use std::collections::BTreeMap;

/// What names stand for inside braces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bindings(BTreeMap<String, Binding>);

#[derive(Clone, Debug, PartialEq)]
enum Binding {
    Number(f64),
    Text(String),
}

impl Bindings {
    /// Lets `name` stand for a number.
    pub(super) fn number(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), Binding::Number(value));
    }

    /// Lets `name` stand for a text; one that reads as a number can be reckoned with.
    pub(super) fn text(&mut self, name: &str, value: &str) {
        let binding = match value.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Binding::Number(number),
            _ => Binding::Text(value.to_owned()),
        };
        self.0.insert(name.to_owned(), binding);
    }

    /// These bindings with one more.
    pub(super) fn with(&self, name: &str, value: f64) -> Bindings {
        let mut more = self.clone();
        more.number(name, value);
        more
    }

    /// `text` with every `{…}` replaced by its value; texts without braces come back as they are.
    ///
    /// # Errors
    /// In words: which part is not understood, and what is allowed in its place.
    pub(super) fn expand(&self, text: &str) -> Result<String, (String, String)> {
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

    fn evaluate(&self, inside: &str) -> Result<String, (String, String)> {
        if let Some(Binding::Text(text)) = self.0.get(inside) {
            return Ok(text.clone());
        }
        let mut parser = Parser { rest: inside, bindings: self, depth: 0 };
        let value = parser.sum()?;
        if !parser.rest.trim().is_empty() {
            let given = format!("'{}' in '{{{inside}}}' is not understood", parser.rest.trim());
            return Err((given, EXAMPLE.to_owned()));
        }
        if !value.is_finite() {
            return Err((format!("'{{{inside}}}' has no finite value"), EXAMPLE.to_owned()));
        }
        Ok(value.to_string())
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        if names.is_empty() { "no variable is defined here".to_owned() } else { names.join(", ") }
    }
}

const EXAMPLE: &str = "{NAME}, numbers, + - * / ( ), and min, max, floor, ceil, round, \
                       such as {10/M}";
const MAX_DEPTH: u32 = 32;

struct Parser<'a> {
    rest: &'a str,
    bindings: &'a Bindings,
    depth: u32,
}

type Outcome = Result<f64, (String, String)>;

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Outcome {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value += self.product()?;
            } else if self.take('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Outcome {
        let mut value = self.factor()?;
        loop {
            if self.take('*') {
                value *= self.factor()?;
            } else if self.take('/') {
                value /= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Outcome {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(("an expression nested too deeply".to_owned(), EXAMPLE.to_owned()));
        }
        let value = if self.take('-') {
            -self.factor()?
        } else if self.take('(') {
            let value = self.sum()?;
            self.expect(')')?;
            value
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn atom(&mut self) -> Outcome {
        let word = self.word();
        if word.is_empty() {
            let given = format!("'{}' where a number or a name should be", self.rest.trim());
            return Err((given, EXAMPLE.to_owned()));
        }
        if let Ok(number) = word.parse::<f64>()
            && word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return Ok(number);
        }
        if self.take('(') {
            return self.call(word);
        }
        match self.bindings.0.get(word) {
            Some(Binding::Number(number)) => Ok(*number),
            Some(Binding::Text(text)) => {
                Err((format!("'{word}' is '{text}', not a number"), EXAMPLE.to_owned()))
            }
            None => Err((format!("there is no variable '{word}'"), self.bindings.names())),
        }
    }

    fn call(&mut self, name: &str) -> Outcome {
        let first = self.sum()?;
        let value = match name {
            "min" | "max" => {
                self.expect(',')?;
                let second = self.sum()?;
                if name == "min" { first.min(second) } else { first.max(second) }
            }
            "floor" => first.floor(),
            "ceil" => first.ceil(),
            "round" => first.round(),
            _ => return Err((format!("there is no function '{name}'"), EXAMPLE.to_owned())),
        };
        self.expect(')')?;
        Ok(value)
    }

    /// The longest run of letters, digits, points and underscores ahead.
    fn word(&mut self) -> &'a str {
        let text = self.rest.trim_start();
        let end = text
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }

    fn take(&mut self, symbol: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(symbol);
        if let Some(rest) = rest {
            self.rest = rest;
        }
        rest.is_some()
    }

    fn expect(&mut self, symbol: char) -> Result<(), (String, String)> {
        if self.take(symbol) {
            return Ok(());
        }
        let given = format!("'{}' where '{symbol}' should be", self.rest.trim());
        Err((given, EXAMPLE.to_owned()))
    }
}

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
