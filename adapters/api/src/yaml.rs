//! Writes a JSON value as block-style YAML, for the committed OpenAPI document.
//!
//! `openapi` alone uses it. Scalars are JSON scalars, which YAML 1.2 reads as the
//! same values; keys are plain where that is safe. Never here: reading YAML.

use serde_json::Value;

pub(crate) fn document(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

fn block(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (key, value) in members {
                indent(depth, out);
                member(key, value, depth, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(depth, out);
                out.push('-');
                entry(item, depth, out);
            }
        }
        _ => {
            indent(depth, out);
            out.push_str(&value.to_string());
            out.push('\n');
        }
    }
}

fn member(key: &str, value: &Value, depth: usize, out: &mut String) {
    out.push_str(&name(key));
    out.push(':');
    entry(value, depth, out);
}

/// What follows a colon or a dash: an empty or scalar value on the line, else a block.
fn entry(value: &Value, depth: usize, out: &mut String) {
    let nested = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if nested {
        out.push('\n');
        block(value, depth + 1, out);
    } else {
        out.push(' ');
        out.push_str(&value.to_string());
        out.push('\n');
    }
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// A key unquoted if no reader could take it for anything but that text.
fn name(key: &str) -> String {
    let plain = key.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && key
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '/'))
        && !matches!(
            key.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if plain {
        key.to_owned()
    } else {
        Value::String(key.to_owned()).to_string()
    }
}
