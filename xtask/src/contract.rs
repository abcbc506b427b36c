//! Holds the generated header against the contract's shape in `tests/c/contract`: layouts, values, names, prototypes,
//! as C11 and as C++14, by the compilers' own judgement.

mod names;

use crate::header::{Part, generate};
use crate::run::{Outcome, command, output_of, root, run};
use std::path::{Path, PathBuf};

/// Compilers and the language each of them stands for.
const LANGUAGES: [(&str, &[&str]); 2] = [("gcc", &["-std=c11", "-x", "c"]), ("g++", &["-std=c++14", "-x", "c++"])];

/// Fails with one line unless the project's header has the contract's shape.
pub fn check() -> Outcome {
    compare(&generate(Part::Types)?, &generate(Part::Functions)?)
}

/// The same for any text of a header: `types` without functions, `functions` alone.
fn compare(types: &str, functions: &str) -> Outcome {
    let contract = root().join("tests/c/contract");
    let shape =
        std::fs::read_to_string(contract.join("blockcanary.h")).map_err(|error| format!("contract: {error}"))?;
    names::compare(types, functions, &shape)?;

    let work = Work::new()?;
    work.write("ours/blockcanary.h", types)?;
    work.write("prototypes.c", &format!("#include <blockcanary.h>\n{functions}"))?;
    let contract_shape = facts(&work, &contract, "gcc", LANGUAGES[0].1)?;
    for (compiler, flags) in LANGUAGES {
        let ours = facts(&work, &work.0.join("ours"), compiler, flags)?;
        if let Some((expected, found)) = contract_shape.lines().zip(ours.lines()).find(|(a, b)| a != b) {
            return Err(format!("the header leaves the contract: `{expected}` is now `{found}`"));
        }
        let mut prototypes = command(compiler);
        prototypes.args(flags).args(["-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"]).arg(&contract);
        run(prototypes.arg(work.0.join("prototypes.c")))
            .map_err(|_| "a prototype of the header is not the contract's (see above)".to_string())?;
    }
    Ok(())
}

/// What `facts.c` prints with the header in `include`.
fn facts(work: &Work, include: &Path, compiler: &str, flags: &[&str]) -> Outcome<String> {
    let program = work.0.join("facts");
    let mut build = command(compiler);
    build.args(flags).args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(include);
    build.arg(root().join("tests/c/contract/facts.c")).arg("-o").arg(&program);
    run(&mut build).map_err(|_| "the header leaves the contract (see above)".to_string())?;
    output_of(&mut command(&program))
}

/// A folder that goes with its owner.
struct Work(PathBuf);

impl Work {
    fn new() -> Outcome<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("blockcanary-contract-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let work = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(work.0.join("ours")).map_err(|error| format!("{}: {error}", work.0.display()))?;
        Ok(work)
    }

    fn write(&self, name: &str, text: &str) -> Outcome {
        std::fs::write(self.0.join(name), text).map_err(|error| format!("{name}: {error}"))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The comparison of a header that `change` has been made to.
    fn with(change: impl Fn(&str) -> String) -> Outcome {
        let (types, functions) = (generate(Part::Types).unwrap(), generate(Part::Functions).unwrap());
        let (new_types, new_functions) = (change(&types), change(&functions));
        assert!((&new_types, &new_functions) != (&types, &functions), "the change has changed nothing");
        compare(&new_types, &new_functions)
    }

    #[test]
    fn the_header_keeps_the_contract() {
        check().unwrap();
    }

    #[test]
    fn a_swapped_pair_of_fields_fails() {
        let swap = |text: &str| {
            text.replace("uint64_t blocks_seen;", "uint64_t @;")
                .replace("uint64_t blocks_delivered;", "uint64_t blocks_seen;")
                .replace("uint64_t @;", "uint64_t blocks_delivered;")
        };
        assert!(with(swap).unwrap_err().contains("blocks_seen"));
    }

    #[test]
    fn another_type_value_or_sign_fails() {
        assert!(with(|text| text.replace("int32_t signal_number;", "uint32_t signal_number;")).is_err());
        assert!(with(|text| text.replace("BC_ERROR_IO = 6", "BC_ERROR_IO = 16")).is_err());
        assert!(with(|text| text.replace("BC_HISTOGRAM_BUCKETS 256u", "BC_HISTOGRAM_BUCKETS 256")).is_err());
        assert!(
            with(|text| text.replace("typedef bool (*bc_block_filter)", "typedef int (*bc_block_filter)")).is_err()
        );
    }

    #[test]
    fn a_field_or_value_too_many_fails() {
        assert!(with(|text| text.replace("bool system_cpu_available;", "bool system_cpu_available, more;")).is_err());
        assert!(with(|text| text.replace("BC_OFF = 2,", "BC_OFF = 2, BC_MAYBE = 3,")).is_err());
    }

    #[test]
    fn another_prototype_fails() {
        let (types, functions) = (generate(Part::Types).unwrap(), "int32_t bc_is_running(void);\n");
        assert!(compare(&types, functions).is_err());
        assert!(compare(&types, "bool bc_is_running(void);\n").is_ok());
        assert!(compare(&types, "bool bc_is_walking(void);\n").is_err());
    }
}
