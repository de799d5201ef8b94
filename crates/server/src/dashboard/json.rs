//! JSON for people: indented, and otherwise as it was written. Numbers stay texts, so none is rounded.

/// Indents JSON that is known to be JSON.
pub(super) fn pretty(text: &str) -> String {
    let mut pretty = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            pretty.push(character);
            (in_string, escaped) = match character {
                _ if escaped => (true, false),
                '\\' => (true, true),
                '"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match character {
            '"' => {
                in_string = true;
                pretty.push('"');
            }
            '{' | '[' => {
                pretty.push(character);
                while characters.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    pretty.push(end);
                } else {
                    depth += 1;
                    line(&mut pretty, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut pretty, depth);
                pretty.push(character);
            }
            ',' => {
                pretty.push(',');
                line(&mut pretty, depth);
            }
            ':' => pretty.push_str(": "),
            _ if character.is_whitespace() => {}
            _ => pretty.push(character),
        }
    }
    pretty
}

fn line(pretty: &mut String, depth: usize) {
    pretty.push('\n');
    pretty.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings_stay_as_they_were_written() {
        let text =
            r#"{"id": 12345678901234567890.10, "empty": {}, "list":[1, "a, {b}: \"c\\"], "none" : [ ]}"#;
        let shown = "{\n  \"id\": 12345678901234567890.10,\n  \"empty\": {},\n  \"list\": [\n    1,\n    \"a, {b}: \\\"c\\\\\"\n  ],\n  \"none\": []\n}";
        assert_eq!(pretty(text), shown);
    }
}
