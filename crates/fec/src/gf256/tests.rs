use super::*;

/// The product by its definition: polynomials multiplied bit by bit, then reduced.
fn product_by_definition(a: u8, b: u8) -> u8 {
    let mut product = 0_u16;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            product ^= u16::from(a) << bit;
        }
    }
    for bit in (8..16).rev() {
        if product >> bit & 1 == 1 {
            product ^= POLYNOMIAL << (bit - 8);
        }
    }
    product as u8
}

fn elements() -> impl Iterator<Item = u8> + Clone {
    0..=255
}

#[test]
fn products_follow_the_definition() {
    for a in elements() {
        for b in elements() {
            assert_eq!(mul(a, b), product_by_definition(a, b), "{a} * {b}");
        }
    }
}

#[test]
fn multiplication_commutes_and_one_is_neutral() {
    for a in elements() {
        assert_eq!(mul(a, 1), a);
        assert_eq!(mul(a, 0), 0);
        for b in elements() {
            assert_eq!(mul(a, b), mul(b, a));
        }
    }
}

#[test]
fn multiplication_associates_and_distributes() {
    for a in elements() {
        for b in elements() {
            for c in elements().step_by(7) {
                assert_eq!(mul(mul(a, b), c), mul(a, mul(b, c)));
                assert_eq!(mul(a, b ^ c), mul(a, b) ^ mul(a, c));
            }
        }
    }
}

#[test]
fn every_element_but_zero_has_one_inverse() {
    assert_eq!(inverse(0), None);
    assert_eq!(div(5, 0), None);
    let mut seen = [false; 256];
    for a in elements().skip(1) {
        let inverse = inverse(a).unwrap();
        assert_eq!(mul(a, inverse), 1, "{a}");
        assert!(!std::mem::replace(&mut seen[usize::from(inverse)], true));
        for b in elements() {
            assert_eq!(mul(div(b, a).unwrap(), a), b);
        }
    }
}

#[test]
fn two_generates_the_group() {
    assert_eq!(log(0), None);
    let mut seen = [false; 256];
    for power in 0..ORDER {
        let value = exp(power);
        assert_eq!(log(value).map(usize::from), Some(power));
        assert_eq!(exp(power + ORDER), value);
        assert_eq!(exp(power + 1), product_by_definition(value, 2));
        assert!(!std::mem::replace(&mut seen[usize::from(value)], true));
    }
}

#[test]
fn nibble_tables_split_the_product() {
    for factor in elements() {
        let table = &NIBBLE_PRODUCTS[usize::from(factor)];
        for x in elements() {
            let sum = table.low[usize::from(x & 15)] ^ table.high[usize::from(x >> 4)];
            assert_eq!(sum, product_by_definition(factor, x));
        }
    }
}

#[test]
fn bit_matrices_multiply() {
    for factor in elements() {
        let rows = BIT_MATRICES[usize::from(factor)].to_le_bytes();
        for x in elements() {
            let product = (0..8).fold(0, |product, bit| {
                let parity = (rows[7 - bit] & x).count_ones() as u8 & 1;
                product | parity << bit
            });
            assert_eq!(product, product_by_definition(factor, x));
        }
    }
}
