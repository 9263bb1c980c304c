//! Whether a program needs anything of the system it runs on (System V ABI, chapter 5).

/// Program header that names the dynamic loader.
const PT_INTERP: u32 = 3;

/// Checks that a 64-bit little-endian ELF program asks for no dynamic loader, and so for no library.
///
/// # Errors
/// If it asks for one, or is no such program.
pub fn check_static(program: &[u8]) -> Result<(), String> {
    match asks_for_loader(program) {
        Some(false) => Ok(()),
        Some(true) => Err("it asks for a dynamic loader: it is not static".into()),
        None => Err("it is no 64-bit little-endian ELF program".into()),
    }
}

fn asks_for_loader(program: &[u8]) -> Option<bool> {
    let number = |at: usize, len: usize| {
        let bytes = program.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    if program.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (headers, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut asks = false;
    for index in 0..count {
        let at = headers.checked_add(index.checked_mul(size)?)?;
        asks |= number(usize::try_from(at).ok()?, 4)? == u64::from(PT_INTERP);
    }
    Some(asks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose headers have these types.
    fn elf(types: &[u32]) -> Vec<u8> {
        let mut program = vec![0; 64];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[32] = 64;
        program[54] = 56;
        program[56] = types.len() as u8;
        for kind in types {
            program.extend(kind.to_le_bytes());
            program.extend([0; 52]);
        }
        program
    }

    #[test]
    fn programs_that_ask_for_a_loader_are_told() {
        assert!(check_static(&elf(&[1, 2, 6])).is_ok());
        assert!(check_static(&elf(&[1, 3])).unwrap_err().contains("not static"));
    }

    #[test]
    fn anything_else_is_no_program() {
        let cut = elf(&[1, 1]);
        for bytes in [&b""[..], b"#!/bin/sh\n", &cut[..100], &cut[..40]] {
            assert!(check_static(bytes).unwrap_err().contains("no 64-bit"), "{}", bytes.len());
        }
        let mut far = elf(&[1]);
        far[32..40].fill(0xff);
        assert!(check_static(&far).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_test_program_is_not_static() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let dynamic = cfg!(not(target_feature = "crt-static"));
        assert_eq!(asks_for_loader(&own), Some(dynamic));
    }
}
