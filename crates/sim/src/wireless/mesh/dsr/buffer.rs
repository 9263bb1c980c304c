use anabranch_types::Time;
use core::time::Duration;

/// The packets that wait for a route (RFC 4728 §4.2), with their tokens and times of arrival.
#[derive(Clone, Debug)]
pub(in super::super) struct SendBuffer {
    places: Vec<Option<(Time, u32)>>,
}

impl SendBuffer {
    pub(in super::super) fn new(room: usize) -> Self {
        SendBuffer { places: vec![None; room] }
    }

    /// Adds a packet. If the buffer is full, the oldest packet is removed and returned.
    pub(in super::super) fn push(&mut self, now: Time, token: u32) -> Option<u32> {
        let since = |place: &Option<(Time, u32)>| place.map_or(Time::ZERO, |(since, _)| since);
        let by_age = |place: &&mut Option<(Time, u32)>| (place.is_some(), since(place));
        match self.places.iter_mut().min_by_key(by_age) {
            Some(place) => place.replace((now, token)).map(|(_, token)| token),
            None => Some(token),
        }
    }

    /// The number of places, occupied or free.
    pub(in super::super) fn room(&self) -> usize {
        self.places.len()
    }

    /// The packet at the place `at`.
    pub(in super::super) fn get(&self, at: usize) -> Option<u32> {
        self.places.get(at).copied().flatten().map(|(_, token)| token)
    }

    /// Removes the packet at the place `at` and returns it.
    pub(in super::super) fn take(&mut self, at: usize) -> Option<u32> {
        self.places.get_mut(at)?.take().map(|(_, token)| token)
    }

    /// Removes the packet at the place `at` and returns it, if it has waited longer than `most`.
    pub(in super::super) fn take_expired(
        &mut self,
        at: usize,
        now: Time,
        most: Duration,
    ) -> Option<u32> {
        let place = self.places.get_mut(at)?;
        place.take_if(|(since, _)| *since + most < now).map(|(_, token)| token)
    }

    /// Number of packets in the buffer.
    pub(in super::super) fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_leaves_a_full_buffer() {
        let mut buffer = SendBuffer::new(2);
        let at = Time::from_secs;
        assert_eq!(buffer.push(at(3), 30), None);
        assert_eq!(buffer.push(at(1), 10), None);
        assert_eq!(buffer.push(at(4), 40), Some(10));
        assert_eq!(buffer.len(), 2);
        assert_eq!(buffer.take(0), Some(30));
        assert_eq!(buffer.get(1), Some(40));
        assert_eq!(buffer.push(at(5), 50), None, "a free place is taken first");
        assert_eq!(SendBuffer::new(0).push(at(1), 7), Some(7));
    }

    #[test]
    fn packets_expire() {
        let mut buffer = SendBuffer::new(1);
        buffer.push(Time::from_secs(1), 1);
        let most = Duration::from_secs(30);
        assert_eq!(buffer.take_expired(0, Time::from_secs(31), most), None);
        let later = Time::from_millis(31_001);
        assert_eq!(buffer.take_expired(0, later, most), Some(1));
        assert_eq!(buffer.len(), 0);
    }
}
