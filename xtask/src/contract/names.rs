//! Names of a C header: what compilers cannot tell is that one has been added.

use crate::run::Outcome;
use std::collections::BTreeSet;

/// Fails unless `types` declares exactly the contract's names, and `functions` none that the contract lacks.
pub fn compare(types: &str, functions: &str, contract: &str) -> Outcome {
    let (contract_types, contract_functions): (Vec<_>, Vec<_>) =
        declarations(contract).into_iter().partition(|text| function(text).is_none());
    let expected = words(&contract_types);
    let found = words(&declarations(types));
    if let Some(name) = found.symmetric_difference(&expected).next() {
        let side = if found.contains(name) { "the contract lacks it" } else { "the contract has it" };
        return Err(format!("`{name}` is not in both headers: {side}"));
    }
    let known: BTreeSet<_> = contract_functions.iter().filter_map(|text| function(text)).collect();
    match declarations(functions).iter().filter_map(|text| function(text)).find(|name| !known.contains(name)) {
        Some(name) => Err(format!("the contract has no function `{name}`")),
        None => Ok(()),
    }
}

/// The text between semicolons, without comments and preprocessor lines but for the constants.
fn declarations(header: &str) -> Vec<String> {
    let mut text = String::new();
    let mut rest = header;
    while let Some((before, comment)) = rest.split_once("/*") {
        text.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let code = text.lines().map(|line| match line.split_once("#define BC_") {
        Some((_, constant)) if !constant.contains('(') => format!("BC_{constant};"),
        _ if line.starts_with('#') => String::new(),
        _ => line.split("//").next().unwrap_or_default().to_string(),
    });
    code.collect::<Vec<_>>().join("\n").split(';').map(str::to_string).collect()
}

/// The name of the function that a declaration declares: the word before its first bracket.
fn function(declaration: &str) -> Option<&str> {
    let head = declaration.split_once('(')?.0;
    let name = head.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    name.starts_with("bc_").then_some(name)
}

/// The project's own names: those with its prefix, and the fields of its structures.
fn words(declarations: &[String]) -> BTreeSet<String> {
    let words = declarations.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words
        .filter(|word| word.starts_with(|first: char| first.is_alphabetic()) && !LANGUAGE.contains(word))
        .map(str::to_string)
        .collect()
}

/// Words that the two headers use differently to say the same.
const LANGUAGE: [&str; 9] = ["enum", "struct", "typedef", "extern", "C", "BC_ENUM", "BC_ENUM_TYPE", "u", "uint32_t"];
