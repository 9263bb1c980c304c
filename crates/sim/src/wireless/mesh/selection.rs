/// Whom a station has heard, as it tells in a route reply that it forwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbourList {
    /// The station.
    pub station: u16,
    /// Its neighbours, in ascending order.
    pub neighbours: Vec<u16>,
}
