//! Runs the digest module in an interpreter and prints one digest a line.
//!
//! The module gets no imports: if it needed a clock, randomness or any other service of its host,
//! it would not start.

use std::process::ExitCode;

use wasmi::{Engine, Linker, Module, Store};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("wasm-run: the path of a module is needed");
        return ExitCode::FAILURE;
    };
    let digests = std::fs::read(&path)
        .map_err(|error| error.to_string())
        .and_then(|module| digests(&module).map_err(|error| error.to_string()));
    match digests {
        Ok(digests) => {
            digests.iter().for_each(|digest| println!("{digest:016x}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("wasm-run: {}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

/// Calls `digest` for each of the `cases` the module says it has.
fn digests(module: &[u8]) -> Result<Vec<u64>, wasmi::Error> {
    let engine = Engine::default();
    let module = Module::new(&engine, module)?;
    let mut store = Store::new(&engine, ());
    let instance = Linker::<()>::new(&engine).instantiate_and_start(&mut store, &module)?;
    let cases = instance.get_typed_func::<(), u32>(&store, "cases")?.call(&mut store, ())?;
    let digest = instance.get_typed_func::<u32, u64>(&store, "digest")?;
    (0..cases).map(|case| digest.call(&mut store, case)).collect()
}
