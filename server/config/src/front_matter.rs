//! Reads the front matter of a Markdown file: YAML between two lines of `---`.
//!
//! The files are not trusted: depth, values and the text after aliases are expanded have a limit
//! (H78).

use crate::tree::{self, Body, Node, Scalar};
use serde_json::{Map, Value};

/// Most characters of all texts after aliases are expanded.
const MOST_CHARS: usize = 250_000;
const FENCE: &str = "---";

/// The members of the front matter of a text.
///
/// # Errors
/// There is none, or it is no mapping: says what is wrong, without text of the file.
pub fn front_matter(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == FENCE;
    if !lines.next().is_some_and(is_fence) {
        return Err("there is no front matter; begin the file with a line `---`".to_owned());
    }
    let mut yaml = String::new();
    loop {
        match lines.next() {
            Some(line) if is_fence(line) => break,
            Some(line) => yaml.push_str(line),
            None => return Err("the front matter has no end; close it by a line `---`".to_owned()),
        }
    }
    let document = tree::read(&yaml).map_err(|error| {
        // The fence is the first line of the file.
        format!("line {} of the front matter {}", error.line + 1, error.reason)
    })?;
    if let Some(double) = document.duplicates.first() {
        return Err(format!(
            "line {} repeats a key of line {}",
            double.second + 1,
            double.first + 1
        ));
    }
    let mut left = MOST_CHARS;
    match document.root.map(|root| value_of(&root, &mut left)).transpose()? {
        Some(Value::Object(members)) => Ok(members),
        None => Ok(Map::new()),
        Some(_) => Err("the front matter is no list of `key: value` lines".to_owned()),
    }
}

fn value_of(node: &Node, left: &mut usize) -> Result<Value, String> {
    match &node.body {
        Body::Scalar(scalar) => {
            spend(&scalar.text, left)?;
            Ok(scalar_value(scalar))
        }
        Body::List(items) => {
            let items = items.iter().map(|item| value_of(item, left));
            Ok(Value::Array(items.collect::<Result<_, _>>()?))
        }
        Body::Map(entries) => {
            let mut members = Map::new();
            for entry in entries {
                spend(&entry.key, left)?;
                members.insert(entry.key.to_string(), value_of(&entry.value, left)?);
            }
            Ok(Value::Object(members))
        }
    }
}

fn spend(text: &str, left: &mut usize) -> Result<(), String> {
    let Some(rest) = left.checked_sub(text.len()) else {
        return Err(format!(
            "the front matter has more than {MOST_CHARS} characters after its aliases are expanded"
        ));
    };
    *left = rest;
    Ok(())
}

fn scalar_value(scalar: &Scalar) -> Value {
    if scalar.is_null() {
        return Value::Null;
    }
    let text = &*scalar.text;
    if scalar.is_plain {
        match text {
            "true" | "True" | "TRUE" => return Value::Bool(true),
            "false" | "False" | "FALSE" => return Value::Bool(false),
            _ => {}
        }
        if let Ok(number) = text.parse::<i64>() {
            return Value::from(number);
        }
    }
    Value::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_read_and_the_rest_of_the_file_is_not() {
        let read = front_matter("---\nname: a\nturns: 5\non: true\nv: '1'\n---\n[ not yaml\n---\n");
        let expected = json!({ "name": "a", "turns": 5, "on": true, "v": "1" });
        assert_eq!(Value::Object(read.unwrap()), expected);
        assert_eq!(front_matter("---\n---\n").unwrap(), Map::new());
        assert_eq!(front_matter("\u{feff}---\r\na: ~\r\n---\r\n").unwrap()["a"], Value::Null);
    }

    #[test]
    fn h78_front_matter_that_is_none_or_grows_is_refused() {
        for (odd, why) in [
            ("", "no front matter"),
            ("name: a\n", "no front matter"),
            ("---\nname: a\n", "no end"),
            ("---\n- a\n---\n", "no list of"),
            ("---\na: [\n---\n", "line 2 of"),
            ("---\na: 1\na: 2\n---\n", "line 3 repeats a key of line 2"),
            ("---\na: &x [*x]\n---\n", "alias"),
        ] {
            let refused = front_matter(odd).unwrap_err();
            assert!(refused.contains(why), "{odd:?}: {refused}");
        }
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), ["*a"; 100].join(", "));
        let refused = front_matter(&format!("---\n{long}---\n")).unwrap_err();
        assert!(refused.contains("250000"), "{refused}");
    }
}
