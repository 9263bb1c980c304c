//! Prints the name and digest of every case, computed natively.

fn main() {
    for case in wasm_digest::CASES {
        println!("{} {:016x}", case.name, (case.run)());
    }
}
