//! Every function of the header says the four things that a C programmer has to know.

use crate::header::{Part, generate};
use crate::run::Outcome;

/// The words that stand in each function's documentation.
const LINES: [&str; 4] = ["Units", "Ownership", "Threads", "Async-signal-safe"];

/// Fails with one line on the first function whose documentation lacks one of them.
pub fn check() -> Outcome {
    check_text(&generate(Part::Functions)?)
}

/// The same for the text of a header.
fn check_text(header: &str) -> Outcome {
    let mut comment = "";
    let mut rest = header;
    while let Some((before, after)) = rest.split_once("/**") {
        lacking(comment, before)?;
        (comment, rest) = after.split_once("*/").unwrap_or((after, ""));
    }
    lacking(comment, rest)
}

/// `code` is what follows `comment` up to the next one. Its first function belongs to it, others have none.
fn lacking(comment: &str, code: &str) -> Outcome {
    let mut documented = comment;
    for declaration in code.split_inclusive(';').filter(|text| text.contains('(') && text.trim_end().ends_with(';')) {
        let head = declaration.split('(').next().unwrap_or_default();
        let name = head.rsplit([' ', '*', '\n']).next().unwrap_or_default();
        if let Some(line) = LINES.iter().find(|line| !documented.contains(*line)) {
            return Err(format!("the documentation of {name} has no line `{line}`"));
        }
        documented = "";
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_text;

    const WHOLE: &str =
        "/**\n * Does.\n *\n * Units: none. Ownership: none. Threads: any. Async-signal-safe: no\n */\n";

    #[test]
    fn a_whole_documentation_passes() {
        check_text(&format!("{WHOLE}void bc_one(void);\n\n{WHOLE}void *bc_two(int (*f)(void),\n  int a);\n")).unwrap();
        check_text("").unwrap();
    }

    #[test]
    fn a_missing_line_or_comment_fails() {
        let without = WHOLE.replace("Threads", "Dreads");
        assert!(check_text(&format!("{without}void bc_one(void);\n")).unwrap_err().contains("bc_one"));
        assert!(
            check_text(&format!("{WHOLE}void bc_one(void);\nvoid bc_two(void);\n")).unwrap_err().contains("bc_two")
        );
        assert!(check_text("void bc_three(void);").is_err());
    }
}
