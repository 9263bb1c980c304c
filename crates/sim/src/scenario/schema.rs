//! Generates the JSON schema of the scenario format from the descriptions of its keys.

use serde_json::{Map, Value, json};

use super::keys::SCENARIO;
use super::spec::{KeySpec, Kind};

/// The schema of a scenario file (JSON Schema draft 2020-12), indented, with a newline at the end.
pub(super) fn json_schema() -> String {
    let mut root = table(SCENARIO);
    if let Value::Object(fields) = &mut root {
        let mut head = Map::new();
        head.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        head.insert("title".to_owned(), json!("Anabranch scenario"));
        head.append(fields);
        *fields = head;
    }
    let mut text = serde_json::to_string_pretty(&root).unwrap_or_default();
    text.push('\n');
    text
}

fn table(keys: &[KeySpec]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|spec| (spec.key.to_owned(), property(spec))).collect();
    let required: Vec<&str> =
        keys.iter().filter(|spec| spec.default.is_none()).map(|spec| spec.key).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn property(spec: &KeySpec) -> Value {
    let mut schema = kind(&spec.kind);
    let mut description = spec.what.to_owned();
    match &spec.kind {
        Kind::Table(_) | Kind::Tables(_) | Kind::Part(..) | Kind::Flag | Kind::Word(_) => {}
        kind => description = format!("{description}; {}", kind.allowed()),
    }
    if let Kind::Part(form, _) = &spec.kind {
        description = format!("{description}; {form}");
    }
    if let Some(default) = spec.default {
        description = format!("{description}; default: {default}");
    }
    schema["description"] = json!(description);
    schema
}

/// The schema of a value. Every value may also be a text that contains `{…}`.
fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": ["string", "number", "boolean"] }),
        Kind::Name | Kind::Rate | Kind::Time | Kind::Size | Kind::Share | Kind::Form(_) => {
            json!({ "type": "string" })
        }
        Kind::Count(least, most) => json!({ "anyOf": [
            { "type": "integer", "minimum": least, "maximum": most },
            expression(),
        ] }),
        Kind::Real(least, most) => {
            let mut number = json!({ "type": "number" });
            if least.is_finite() {
                number["minimum"] = json!(least);
            }
            if most.is_finite() {
                number["maximum"] = json!(most);
            }
            json!({ "anyOf": [number, expression()] })
        }
        Kind::Flag => json!({ "anyOf": [{ "type": "boolean" }, expression()] }),
        Kind::Word(words) => json!({ "anyOf": [{ "enum": words }, expression()] }),
        Kind::Names(_) => json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" } },
        ] }),
        Kind::Part(_, keys) => json!({ "anyOf": [{ "type": "string" }, table(keys)] }),
        Kind::Table(keys) => table(keys),
        Kind::Tables(keys) => json!({ "type": "array", "items": table(keys) }),
        Kind::Free(_) => json!({
            "type": "object",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        Kind::Settings => json!({ "type": "object" }),
        Kind::Each => json!({ "type": ["string", "array", "object"] }),
        Kind::List(_) => json!({ "type": ["array", "string"] }),
        Kind::Seeds => json!({ "anyOf": [
            { "type": "integer", "minimum": 1, "maximum": 10_000 },
            { "type": "array", "items": { "type": "integer", "minimum": 0 }, "minItems": 1 },
        ] }),
    }
}

fn expression() -> Value {
    json!({ "type": "string", "pattern": "\\{.*\\}" })
}
