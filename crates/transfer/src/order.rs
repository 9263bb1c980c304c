//! The entries of an offer by name: what a link leads to is looked up here.

use core::cmp::Ordering;

use super::manifest::{Kind, MAX_STEPS, Manifest, ManifestError};

/// Most other links that a link may lead over.
const MAX_OVER: usize = 8;
/// Bytes of two names that are compared at once.
const CHUNK: usize = 64;

/// Entries in the order of their names, in which everything within an entry follows directly after
/// the entry.
pub(super) struct Order<'a> {
    offer: &'a Manifest,
    /// Positions in the offer.
    places: Vec<u32>,
    /// Parts of paths looked up so far.
    steps: usize,
    /// For each position in the offer, how many links are followed from the link there, itself
    /// included, to an entry that is no link; 0 if that is not known.
    ways: Vec<u8>,
}

/// Where a path leads.
enum End {
    /// To nothing on offer.
    Nothing,
    /// To an entry, or to a directory of which there are entries.
    There,
    /// To a link first: its position in the offer, and how many bytes at the beginning of the path are its name.
    Link(usize, usize),
}

impl<'a> Order<'a> {
    /// Sorts the entries of an offer.
    pub(super) fn new(offer: &'a Manifest) -> Self {
        let mut places: Vec<u32> = (0u32..).take(offer.len()).collect();
        let name = |index: &u32| offer.name(*index as usize);
        places.sort_unstable_by(|a, b| compare(name(a), name(b)));
        Order { offer, places, steps: 0, ways: Vec::new() }
    }

    /// Pairs of neighbours, by their positions in the offer.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let indices = || self.places.iter().map(|index| *index as usize);
        indices().zip(indices().skip(1))
    }

    /// Whether the link at this position leads to something on offer, over at most [`MAX_OVER`] others. The
    /// links on the way are then known, and are not followed again.
    ///
    /// # Errors
    /// If following links has taken more than [`MAX_STEPS`] so far.
    pub(super) fn leads_there(&mut self, link: usize) -> Result<bool, ManifestError> {
        self.ways.resize(self.offer.len(), 0);
        // The links on the way, in turn. `None` stands for a link to a directory within which the
        // path continues.
        let (mut met, mut count) = ([None; 1 + MAX_OVER], 1);
        met[0] = Some(link);
        let mut path = self.target(link, self.offer.name(link));
        let more = loop {
            let Some(at) = path else { return Ok(false) };
            match self.walk(&at)? {
                End::Nothing => return Ok(false),
                End::There => break 0,
                End::Link(link, length) => {
                    let (name, rest) = at.split_at_checked(length).unwrap_or((&at, ""));
                    let way = self.ways.get(link).copied().unwrap_or(0);
                    if rest.is_empty() && way > 0 {
                        break usize::from(way);
                    }
                    let Some(place) = met.get_mut(count) else { return Ok(false) };
                    *place = rest.is_empty().then_some(link);
                    count += 1;
                    path = self.target(link, name).map(|target| target + rest);
                }
            }
        };
        let way = count + more;
        for (place, link) in met.into_iter().enumerate() {
            if let Some(known) = link.and_then(|link| self.ways.get_mut(link)) {
                *known = (way - place) as u8;
            }
        }
        Ok(way <= 1 + MAX_OVER)
    }

    /// Path that the link of this position and name leads to, if it stays below the top.
    fn target(&self, link: usize, name: &str) -> Option<String> {
        self.offer.target(link)?.seen_from(name)
    }

    /// Follows a path part by part, as far as the first link.
    fn walk(&mut self, path: &str) -> Result<End, ManifestError> {
        // Entries whose names begin with the parts that were followed so far, and how many bytes these parts have.
        let (mut within, mut length) = (&self.places[..], 0);
        for part in path.split('/') {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(ManifestError::TooMany);
            }
            within = self.narrow(within, length, part);
            length += part.len();
            let Some(first) = within.first().map(|index| *index as usize) else {
                return Ok(End::Nothing);
            };
            if self.offer.kind(first) == Some(Kind::Link) && self.offer.name(first).len() == length
            {
                return Ok(End::Link(first, length));
            }
            length += 1;
        }
        Ok(End::There)
    }

    /// The entries among `within` whose name has `part` as its next part after `length` bytes.
    fn narrow<'b>(&self, within: &'b [u32], length: usize, part: &str) -> &'b [u32] {
        let rest = |index: &u32| self.offer.name(*index as usize).get(length..);
        let is_part = |index: &u32| {
            let after = rest(index).and_then(|rest| rest.strip_prefix(part));
            after.is_some_and(|after| after.is_empty() || after.starts_with('/'))
        };
        if within.first().is_some_and(is_part) && within.last().is_some_and(is_part) {
            return within;
        }
        // A directory itself, whose name has no further part, is before all that is within it.
        let is_before =
            |index: &u32| rest(index).is_none_or(|rest| compare(rest, part) == Ordering::Less);
        let from = within.split_at(within.partition_point(is_before)).1;
        // Usually there is none or one, and a binary search would compare more.
        let ends_at = |place: &usize| from.get(*place).is_none_or(|index| !is_part(index));
        let count = [0, 1].into_iter().find(ends_at);
        from.split_at(count.unwrap_or_else(|| from.partition_point(is_part))).0
    }
}

/// Compares names as if the slash were before all other bytes.
fn compare<'a>(a: &'a str, b: &'a str) -> Ordering {
    let chunks = a.as_bytes().chunks_exact(CHUNK).zip(b.as_bytes().chunks_exact(CHUNK));
    let alike = chunks.take_while(|(a, b)| a == b).count() * CHUNK;
    let rest = |name: &'a str| {
        let bytes = name.as_bytes().get(alike..).unwrap_or_default();
        bytes.iter().map(|byte| if *byte == b'/' { 0 } else { *byte })
    };
    rest(a).cmp(rest(b))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::link::Target;
    use super::super::manifest::{Entry, Modified};
    use super::super::name::Name;
    use super::*;

    /// For the name of each entry, the target if it is a link.
    type Entries = BTreeMap<String, Option<String>>;

    /// Names of few parts, some of which have bytes that are before the slash, or are long.
    fn path() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec!["a", "b", "a-", "a b", "a.b"]).prop_map(str::to_owned);
        let long = (1_usize..3, "[ab]").prop_map(|(chunks, end)| "a".repeat(63 * chunks) + &end);
        prop::collection::vec(prop_oneof![6 => part, 1 => long], 1..4)
            .prop_map(|parts| parts.join("/"))
    }

    fn entries() -> impl Strategy<Value = Entries> {
        let target = (0_usize..2, path()).prop_map(|(up, path)| "../".repeat(up) + &path);
        prop::collection::btree_map(path(), prop::option::weighted(0.7, target), 1..30)
    }

    fn offer(entries: &Entries) -> Manifest {
        let mut offer = Manifest::default();
        for (name, target) in entries {
            let kind = if target.is_some() { Kind::Link } else { Kind::File };
            let target = target.as_ref().map(|target| Target::new(target.as_str()).unwrap());
            let (name, modified) = (Name::new(name.as_str()).unwrap(), Modified::default());
            offer.push(&Entry { name, kind, mode: 0, size: 0, modified, target }).unwrap();
        }
        offer
    }

    /// A model of [`Order::leads_there`], which looks for each beginning of a path among all entries.
    fn leads_there(entries: &Entries, link: &str) -> bool {
        let target = |name: &str| Target::new(entries.get(name)?.as_deref()?).ok()?.seen_from(name);
        let mut path = target(link);
        for _ in 0..=MAX_OVER {
            let Some(at) = path else { return false };
            let slashes = at.match_indices('/').map(|(slash, _)| slash);
            let mut names = slashes.chain([at.len()]).map(|end| at.split_at(end));
            let link = names.find(|(name, _)| entries.get(*name).is_some_and(Option::is_some));
            match link {
                Some((name, rest)) => path = target(name).map(|target| target + rest),
                None => {
                    let within = at.clone() + "/";
                    return entries.keys().any(|name| *name == at || name.starts_with(&within));
                }
            }
        }
        false
    }

    proptest! {
        #[test]
        fn links_lead_where_a_search_through_all_names_finds_them(entries in entries()) {
            let offer = offer(&entries);
            let mut order = Order::new(&offer);
            for (index, (name, target)) in entries.iter().enumerate() {
                if target.is_some() {
                    prop_assert_eq!(order.leads_there(index), Ok(leads_there(&entries, name)), "{}", name);
                }
            }
        }

        #[test]
        fn all_that_is_within_an_entry_follows_it_at_once(entries in entries()) {
            let offer = offer(&entries);
            let order = Order::new(&offer);
            let names: Vec<&str> = order.places.iter().map(|index| offer.name(*index as usize)).collect();
            for (place, name) in names.iter().enumerate() {
                let is_within = |other: &&str| {
                    other.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
                };
                let after = names[place + 1..].iter().take_while(|other| is_within(other)).count();
                prop_assert_eq!(after, names.iter().filter(|other| is_within(other)).count());
            }
        }
    }
}
