//! Prints the comparison.

use serde_json::{Map, Value, json};

/// One comparison. `fields` go into JSON as they are.
pub struct Line {
    pub fields: Vec<(&'static str, Value)>,
    /// Whether the row counts towards the verdict, and whether it agrees.
    pub counted: bool,
    pub inside: bool,
}

/// All comparisons.
pub struct Report {
    lines: Vec<Line>,
    json: bool,
}

/// Share of the counted rows that must agree.
const TARGET: f64 = 0.95;

impl Report {
    pub fn new(lines: Vec<Line>, json: bool) -> Self {
        Report { lines, json }
    }

    fn points(&self) -> usize {
        self.lines.iter().filter(|line| line.counted).count()
    }

    fn inside(&self) -> usize {
        self.lines.iter().filter(|line| line.counted && line.inside).count()
    }

    /// Whether enough rows agree.
    pub fn passes(&self) -> bool {
        self.inside() as f64 >= TARGET * self.points() as f64
    }

    pub fn print(&self) {
        if self.json {
            let rows: Vec<Value> = self.lines.iter().map(Line::object).collect();
            let (points, inside) = (self.points(), self.inside());
            println!("{}", json!({ "points": points, "inside": inside, "rows": rows }));
            return;
        }
        let mut header = Vec::new();
        for line in &self.lines {
            let names: Vec<&str> = line.fields.iter().map(|(name, _)| *name).collect();
            if names != header {
                println!("{}", names.iter().map(|name| cell(name)).collect::<String>());
                header = names;
            }
            let cells: String = line.fields.iter().map(|(_, value)| cell(&show(value))).collect();
            println!("{cells}{}", if line.inside { "" } else { "  <- outside" });
        }
        println!("{} of {} points inside", self.inside(), self.points());
    }
}

impl Line {
    fn object(&self) -> Value {
        let mut object = Map::new();
        for (name, value) in &self.fields {
            object.insert((*name).to_owned(), value.clone());
        }
        object.insert("inside".to_owned(), Value::Bool(self.inside));
        Value::Object(object)
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(real) if real.fract() != 0.0 => format!("{real:.4}"),
            Some(real) => format!("{real:.0}"),
            None => number.to_string(),
        },
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn cell(text: &str) -> String {
    format!("{text:>19} ")
}
