use super::*;

fn plain(points: impl Iterator<Item = u8>, a: u8) -> i32 {
    points.map(|point| log(point ^ a)).sum()
}

#[test]
fn sums_over_runs_are_those_of_their_numbers() {
    for end in 0..=255 {
        for a in [0, 1, 37, 128, 254, 255] {
            assert_eq!(below(end, a), plain(0..end, a), "below {end}, {a}");
        }
    }
}

#[test]
fn runs_are_recognised_whatever_the_order() {
    assert_eq!(run(&[3, 4, 5]), Some(3..6));
    assert_eq!(run(&[254]), Some(254..255));
    for other in [&[][..], &[3, 5], &[5, 4, 3], &[4, 3], &[7, 7], &[255], &[254, 255]] {
        assert_eq!(run(other), None, "{other:?}");
    }
}

#[test]
fn products_are_the_same_however_points_are_told() {
    let (list, others) = ([0, 2, 3, 5, 6, 8], [1, 4, 7]);
    for a in 0..=255 {
        let product = plain(list.into_iter(), a);
        assert_eq!(Points::of(&list).product(a), product);
        assert_eq!(Points::but(&list, &others).product(a), product);
        assert_eq!(Points::but(&others, &list).product(a), plain(others.into_iter(), a));
        assert_eq!(Points::of(&[9, 10, 11, 12]).product(a), plain(9..13, a));
    }
    assert!(matches!(Points::but(&list, &others), Points::Below(9, _)));
    assert!(matches!(Points::but(&others, &list), Points::List(_)));
}
