//! Arithmetic of GF(2^8), the field of bytes modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11D).
//!
//! Addition and subtraction are both exclusive or. The element 2 generates the multiplicative
//! group, so products are sums of logarithms. This is the polynomial of RFC 5510 §8.1 and of
//! RFC 8681; the one of AES, 0x11B, is a different field with different products.

/// The field's reducing polynomial, with the x^8 term.
pub const POLYNOMIAL: u16 = 0x11D;

/// The number of elements other than zero, and so the period of [`exp`].
pub const ORDER: usize = 255;

/// The product of `a` and `b`.
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[LOG[a as usize] as usize + LOG[b as usize] as usize]
}

/// `a` divided by `b`; `None` if `b` is zero.
pub const fn div(a: u8, b: u8) -> Option<u8> {
    match inverse(b) {
        Some(inverse) => Some(mul(a, inverse)),
        None => None,
    }
}

/// The element whose product with `a` is 1; `None` for zero, which has none.
pub const fn inverse(a: u8) -> Option<u8> {
    match log(a) {
        Some(log) => Some(EXP[ORDER - log as usize]),
        None => None,
    }
}

/// 2 raised to `power`; the powers repeat every [`ORDER`].
pub const fn exp(power: usize) -> u8 {
    EXP[power % ORDER]
}

/// The power of 2, in `0..255`, that equals `a`; `None` for zero, which is no power of 2.
pub const fn log(a: u8) -> Option<u8> {
    if a == 0 { None } else { Some(LOG[a as usize]) }
}

/// Powers of 2 for exponents up to three times [`ORDER`], so that the sum of three logarithms
/// needs no reduction.
pub(crate) static EXP: [u8; 1024] = {
    let mut table = [0; 1024];
    let (mut power, mut value) = (0, 1);
    while power < table.len() {
        table[power] = value;
        value = double(value);
        power += 1;
    }
    table
};

/// Logarithms to base 2. The entry of zero is 0, like that of 1: sums of logarithms thus leave out
/// zero factors without a branch.
pub(crate) static LOG: [u8; 256] = {
    let mut table = [0; 256];
    let (mut power, mut value) = (0_u8, 1_u8);
    while power < 255 {
        table[value as usize] = power;
        value = double(value);
        power += 1;
    }
    table
};

/// For each factor, its products with 0..16 and then with 0, 16, …, 240: the product with a byte
/// is the sum of one entry from each half.
pub(crate) static NIBBLE_PRODUCTS: [NibbleProducts; 256] = {
    let mut tables = [NibbleProducts { low: [0; 16], high: [0; 16] }; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            tables[factor].low[nibble] = mul(factor as u8, nibble as u8);
            tables[factor].high[nibble] = mul(factor as u8, (nibble << 4) as u8);
            nibble += 1;
        }
        factor += 1;
    }
    tables
};

/// One factor's products with the low and with the high halves of a byte.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct NibbleProducts {
    pub(crate) low: [u8; 16],
    pub(crate) high: [u8; 16],
}

/// For each factor, multiplication by it as an 8 × 8 bit matrix in the layout of the GFNI affine
/// instruction: byte 7 − i holds the row of output bit i.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) static BIT_MATRICES: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut column = factor as u8;
        let mut input_bit = 0;
        while input_bit < 8 {
            let mut output_bit = 0;
            while output_bit < 8 {
                if column >> output_bit & 1 == 1 {
                    matrices[factor] |= 1 << ((7 - output_bit) * 8 + input_bit);
                }
                output_bit += 1;
            }
            column = double(column);
            input_bit += 1;
        }
        factor += 1;
    }
    matrices
};

/// The product of `a` and 2: a shift, reduced if it overflows.
const fn double(a: u8) -> u8 {
    let carry = if a & 0x80 == 0 { 0 } else { (POLYNOMIAL & 0xFF) as u8 };
    (a << 1) ^ carry
}

#[cfg(test)]
mod tests;
