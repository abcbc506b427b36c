//! `cargo xtask test`: everything that must hold, cheapest first.

use crate::run::{Outcome, cargo, command, run};
use crate::{cmake, contract, documents, header, tools};

/// The command.
pub fn main(args: pico_args::Arguments) -> Outcome {
    crate::nothing_left(args)?;
    tools::ensure_packages()?;
    tools::ensure_components()?;

    step("format");
    run(cargo().args(["fmt", "--all", "--check"])).map_err(|_| "not formatted: run `cargo fmt --all`".to_string())?;
    step("lints");
    run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    step("header");
    header::verify()?;
    contract::check()?;
    documents::check()?;
    step("Rust tests");
    run(cargo().args(["test", "--quiet", "--workspace"]))?;
    step("C programs");
    let build = cmake::build(&[])?;
    step("C tests");
    run(command("ctest").arg("--test-dir").arg(&build).arg("--output-on-failure"))
}

fn step(name: &str) {
    println!("== {name}");
}
