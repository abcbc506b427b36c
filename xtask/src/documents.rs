//! Every function of the header says the four things that a C programmer has to know, and the documents lead somewhere.

use crate::header::{Part, generate};
use crate::run::{Outcome, root};
use std::path::{Path, PathBuf};

/// The words that stand in each function's documentation.
const LINES: [&str; 4] = ["Units", "Ownership", "Threads", "Async-signal-safe"];

/// Fails with one line on the first function whose documentation lacks one of them, or the first link to nothing.
pub fn check() -> Outcome {
    check_text(&generate(Part::Functions)?)?;
    check_links(&root())
}

/// Fails with one line where a document of this folder, or of `docs` in it, leads to a file that is not there.
pub fn check_links(folder: &Path) -> Outcome {
    for document in [documents(folder)?, documents(&folder.join("docs"))?].concat() {
        let text = std::fs::read_to_string(&document).map_err(|error| format!("{}: {error}", document.display()))?;
        let place = document.parent().unwrap_or(folder);
        if let Some(link) = files(&text).find(|link| !place.join(link).exists()) {
            return Err(format!("{}: leads to {link}, which is not there", document.display()));
        }
    }
    Ok(())
}

fn documents(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect())
}

/// What links of a text lead to, but for addresses and places within it.
fn files(text: &str) -> impl Iterator<Item = &str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    links.filter(|link| !link.is_empty() && !link.contains("://"))
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
    use super::{check_links, check_text, files};

    const WHOLE: &str =
        "/**\n * Does.\n *\n * Units: none. Ownership: none. Threads: any. Async-signal-safe: no\n */\n";

    #[test]
    fn a_whole_documentation_passes() {
        check_text(&format!("{WHOLE}void bc_one(void);\n\n{WHOLE}void *bc_two(int (*f)(void),\n  int a);\n")).unwrap();
        check_text("").unwrap();
    }

    #[test]
    fn links_to_files_are_found() {
        let text = "[a](docs/a.md#part), [b](https://b.org/c), [`c`](c), [here](#here)\n![d](d.png)";
        assert_eq!(files(text).collect::<Vec<_>>(), ["docs/a.md", "c", "d.png"]);
        let folder = std::env::temp_dir().join(format!("blockcanary-links-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("docs")).unwrap();
        std::fs::write(folder.join("README.md"), "[a](docs/a.md)").unwrap();
        assert!(check_links(&folder).unwrap_err().contains("docs/a.md"));
        std::fs::write(folder.join("docs/a.md"), "[b](../README.md)").unwrap();
        check_links(&folder).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
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
