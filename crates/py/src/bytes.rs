//! Figures of a report as Arrow buffers that share the report's memory.

use std::sync::Arc;

use anabranch_sim::report::RunReport;
use arrow_array::Float64Array;
use arrow_buffer::{Buffer, ScalarBuffer};

/// Figures of a report that an array holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The times of the series of that index.
    Times(usize),
    /// The values of the series of that index.
    Series(usize),
    /// The values of the samples of that index.
    Samples(usize),
}

struct Shared {
    report: Arc<RunReport>,
    part: Part,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        let RunReport { series, samples, .. } = self.report.as_ref();
        let values = match self.part {
            Part::Times(index) => series.get(index).map(|series| &series.times),
            Part::Series(index) => series.get(index).map(|series| &series.values),
            Part::Samples(index) => samples.get(index).map(|samples| &samples.values),
        };
        values.map_or(&[], |values| bytemuck::cast_slice(values))
    }
}

/// An array that shares the report's memory.
pub(crate) fn shared(report: &Arc<RunReport>, part: Part) -> Float64Array {
    let owner = Shared { report: Arc::clone(report), part };
    let buffer = Buffer::from(bytes::Bytes::from_owner(owner));
    Float64Array::new(ScalarBuffer::from(buffer), None)
}
