//! Formulas in scenarios: numbers, names, `+ - * / ( )` and a few functions.
//!
//! Formulas occur inside the braces of texts, where names are variables, and in the metrics of
//! claims, where names are figures. A figure may be taken from another point of the sweep:
//! `goodput_mbps[M=1]`.

/// A mistake, and what is allowed instead.
pub(super) type Refusal = (String, String);

/// A parsed formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    Number(f64),
    Name(Name),
    Negative(Box<Formula>),
    Both(Box<Formula>, char, Box<Formula>),
    Call(&'static str, Vec<Formula>),
}

/// A name, and the values of sweep keys that select another point.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Name {
    pub name: String,
    pub pins: Vec<(String, String)>,
}

/// What formulas may contain in addition to numbers, names and arithmetic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grammar {
    /// Functions, each with its smallest and largest number of arguments.
    pub functions: &'static [(&'static str, usize, usize)],
    /// Whether names may have `[KEY=VALUE]` behind them.
    pub pins: bool,
    /// The allowed forms, as error messages state them.
    pub example: &'static str,
}

/// The functions of plain numbers, each with its smallest and largest number of arguments.
const NUMERIC: [(&str, usize, usize); 5] =
    [("min", 2, 2), ("max", 2, 2), ("floor", 1, 1), ("ceil", 1, 1), ("round", 1, 1)];

const MAX_DEPTH: u32 = 32;

/// Computes a function that is not in `NUMERIC` from its name and its arguments.
pub(super) type Call<'a, E> = dyn Fn(&str, &[Formula]) -> Result<f64, E> + 'a;

impl Formula {
    /// Reads all of `text`.
    ///
    /// # Errors
    /// When a part of `text` is not understood. The error names this part.
    pub(super) fn parse(text: &str, grammar: &Grammar) -> Result<Formula, Refusal> {
        let mut parser = Parser { rest: text, grammar, depth: 0 };
        let formula = parser.sum()?;
        if parser.rest.trim().is_empty() {
            return Ok(formula);
        }
        let given = format!("'{}' in '{text}' is not understood", parser.rest.trim());
        Err((given, grammar.example.to_owned()))
    }

    /// The value of the formula. `name` gives the values of names, `call` those of functions that
    /// are not in `NUMERIC`.
    pub(super) fn value<E>(
        &self,
        name: &dyn Fn(&Name) -> Result<f64, E>,
        call: &Call<'_, E>,
    ) -> Result<f64, E> {
        Ok(match self {
            Formula::Number(number) => *number,
            Formula::Name(of) => name(of)?,
            Formula::Negative(of) => -of.value(name, call)?,
            Formula::Both(left, sign, right) => {
                let (left, right) = (left.value(name, call)?, right.value(name, call)?);
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                }
            }
            Formula::Call(function, arguments) => match (*function, arguments.as_slice()) {
                ("min", [a, b]) => a.value(name, call)?.min(b.value(name, call)?),
                ("max", [a, b]) => a.value(name, call)?.max(b.value(name, call)?),
                ("floor", [a]) => a.value(name, call)?.floor(),
                ("ceil", [a]) => a.value(name, call)?.ceil(),
                ("round", [a]) => a.value(name, call)?.round(),
                _ => call(function, arguments)?,
            },
        })
    }

    /// Calls `see` with every name. If the name is the first argument of a function that is not in
    /// `NUMERIC`, that function is passed, too.
    pub(super) fn names<'a>(&'a self, see: &mut dyn FnMut(&'a Name, Option<&'static str>)) {
        match self {
            Formula::Number(_) => {}
            Formula::Name(name) => see(name, None),
            Formula::Negative(of) => of.names(see),
            Formula::Both(left, _, right) => {
                left.names(see);
                right.names(see);
            }
            Formula::Call(function, arguments) => {
                let numeric = NUMERIC.iter().any(|(name, ..)| name == function);
                for (index, argument) in arguments.iter().enumerate() {
                    match argument {
                        Formula::Name(name) if index == 0 && !numeric => see(name, Some(function)),
                        other => other.names(see),
                    }
                }
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    grammar: &'a Grammar,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<Formula, Refusal> {
        let mut formula = self.product()?;
        while let Some(sign) = self.take_any(&['+', '-']) {
            formula = Formula::Both(Box::new(formula), sign, Box::new(self.product()?));
        }
        Ok(formula)
    }

    fn product(&mut self) -> Result<Formula, Refusal> {
        let mut formula = self.factor()?;
        while let Some(sign) = self.take_any(&['*', '/']) {
            formula = Formula::Both(Box::new(formula), sign, Box::new(self.factor()?));
        }
        Ok(formula)
    }

    fn factor(&mut self) -> Result<Formula, Refusal> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.refusal("an expression nested too deeply"));
        }
        let formula = if self.take('-') {
            Formula::Negative(Box::new(self.factor()?))
        } else if self.take('(') {
            let formula = self.sum()?;
            self.expect(')')?;
            formula
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(formula)
    }

    fn atom(&mut self) -> Result<Formula, Refusal> {
        let word = self.word();
        if word.is_empty() {
            let given = format!("'{}' where a number or a name should be", self.rest.trim());
            return Err(self.refusal(given));
        }
        if let Ok(number) = word.parse::<f64>()
            && word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return Ok(Formula::Number(number));
        }
        if self.take('(') {
            return self.call(word);
        }
        let pins = if self.grammar.pins && self.take('[') { self.pins()? } else { Vec::new() };
        Ok(Formula::Name(Name { name: word.to_owned(), pins }))
    }

    fn call(&mut self, name: &str) -> Result<Formula, Refusal> {
        let known = NUMERIC.iter().chain(self.grammar.functions).find(|(known, ..)| *known == name);
        let Some((name, least, most)) = known else {
            return Err(self.refusal(format!("there is no function '{name}'")));
        };
        let mut arguments = vec![self.sum()?];
        while arguments.len() < *most && self.take(',') {
            arguments.push(self.sum()?);
        }
        if arguments.len() < *least {
            self.expect(',')?;
        }
        self.expect(')')?;
        Ok(Formula::Call(name, arguments))
    }

    /// Reads `KEY=VALUE, KEY=VALUE]`.
    fn pins(&mut self) -> Result<Vec<(String, String)>, Refusal> {
        let Some((inside, rest)) = self.rest.split_once(']') else {
            return Err(self.refusal("a '[' without its ']'"));
        };
        self.rest = rest;
        let pin = |pair: &str| {
            let (key, value) = pair.split_once('=')?;
            Some((key.trim().to_owned(), value.trim().to_owned()))
        };
        let pins: Option<Vec<_>> = inside.split(',').map(pin).collect();
        pins.ok_or_else(|| self.refusal(format!("'[{inside}]' is not understood")))
    }

    /// Reads the letters, digits, points and underscores up to the next other character.
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
        self.take_any(&[symbol]).is_some()
    }

    fn take_any(&mut self, symbols: &[char]) -> Option<char> {
        let text = self.rest.trim_start();
        let found = text.chars().next().filter(|c| symbols.contains(c))?;
        self.rest = text.get(found.len_utf8()..)?;
        Some(found)
    }

    fn expect(&mut self, symbol: char) -> Result<(), Refusal> {
        if self.take(symbol) {
            return Ok(());
        }
        Err(self.refusal(format!("'{}' where '{symbol}' should be", self.rest.trim())))
    }

    fn refusal(&self, given: impl Into<String>) -> Refusal {
        (given.into(), self.grammar.example.to_owned())
    }
}
