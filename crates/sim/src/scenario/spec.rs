//! The types that describe the keys of a scenario. The reader, the schema and the documentation use
//! the same descriptions.

/// The description of a key: its accepted values and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Name of the key.
    pub key: &'static str,
    /// Values that the key accepts.
    pub kind: Kind,
    /// The value if the key is left out, as a value or in words; `None` if the key is required.
    pub default: Option<&'static str>,
    /// Meaning of the key.
    pub what: &'static str,
}

/// Values that a key accepts. Every single value may also be a text that contains `{…}`.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// A name of 1 to 32 letters, digits, `_` or `-`. In a group, `{i}` stands for the number.
    Name,
    /// A rate such as `10mbit`.
    Rate,
    /// A duration such as `20ms`.
    Time,
    /// A size such as `64KiB`.
    Size,
    /// A share such as `5%`.
    Share,
    /// A whole number within bounds.
    Count(u64, u64),
    /// A number within bounds.
    Real(f64, f64),
    /// True or false.
    Flag,
    /// One of several words.
    Word(&'static [&'static str]),
    /// A name or a list of names. The text says what they name.
    Names(&'static str),
    /// A text whose form is described by the field.
    Form(&'static str),
    /// A text whose form is described by the first field, or a table with the keys of the second.
    Part(&'static str, &'static [KeySpec]),
    /// A table.
    Table(&'static [KeySpec]),
    /// Any number of tables.
    Tables(&'static [KeySpec]),
    /// A table with free keys, whose values are numbers or texts. The text says what the keys are.
    Free(&'static str),
    /// A table of keys from anywhere in the file, with their new values.
    Settings,
    /// The name of a sweep's key, a list of them, or a table of keys with lists of values.
    Each,
    /// A list of values of any kind. The text says what they are.
    List(&'static str),
    /// A count of seeds from 1 on, or a list of seeds.
    Seeds,
}

impl Kind {
    /// The accepted values, as error messages and the documentation state them.
    pub fn allowed(&self) -> String {
        match self {
            Kind::Text => "a text".to_owned(),
            Kind::Name => "1 to 32 letters, digits, '_' or '-'; {i} for the number".to_owned(),
            Kind::Rate => "1kbit to 1000gbit, such as 10mbit".to_owned(),
            Kind::Time => "0s to 10 days, such as 20ms".to_owned(),
            Kind::Size => "0B to 1TB, such as 64KiB".to_owned(),
            Kind::Share => "0% to 100%, such as 5%".to_owned(),
            Kind::Count(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Real(least, most) if *most == f64::INFINITY => {
                if *least == f64::NEG_INFINITY {
                    "a number".to_owned()
                } else {
                    format!("a number from {least}")
                }
            }
            Kind::Real(least, most) => format!("a number from {least} to {most}"),
            Kind::Flag => "true or false".to_owned(),
            Kind::Word(words) => words.join(", "),
            Kind::Names(what) => format!("a name or a list of names: {what}"),
            Kind::Form(form) => (*form).to_owned(),
            Kind::Part(form, keys) => format!("{form}; or a table of {}", list(keys)),
            Kind::Table(keys) => format!("a table of {}", list(keys)),
            Kind::Tables(keys) => format!("tables of {}", list(keys)),
            Kind::Free(what) => format!("a table of {what}"),
            Kind::Settings => {
                "a table of keys such as sweep.M.values, with their values".to_owned()
            }
            Kind::Each => "a sweep's key, a list of them, or { KEY = [VALUE, …] }".to_owned(),
            Kind::List(what) => format!("a list of {what}"),
            Kind::Seeds => "a number from 1 to 10000, or a list of whole numbers".to_owned(),
        }
    }
}

/// The names of keys, for messages.
pub(super) fn list(keys: &[KeySpec]) -> String {
    keys.iter().map(|spec| spec.key).collect::<Vec<_>>().join(", ")
}

/// The description of a required key.
pub(super) const fn needed(key: &'static str, kind: Kind, what: &'static str) -> KeySpec {
    KeySpec { key, kind, default: None, what }
}

/// The description of an optional key.
pub(super) const fn optional(
    key: &'static str,
    kind: Kind,
    default: &'static str,
    what: &'static str,
) -> KeySpec {
    KeySpec { key, kind, default: Some(default), what }
}
