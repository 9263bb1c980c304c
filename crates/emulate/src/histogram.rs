use core::time::Duration;

/// The steps (buckets) of a histogram. Values beyond the last step are counted together, and only
/// the largest of them is kept.
pub trait Steps {
    /// Number of steps.
    const COUNT: usize;

    /// Index of the step that a value in microseconds belongs to, from 0; [`Steps::COUNT`] or more
    /// if the value is beyond the last step.
    fn index(micros: u64) -> u64;

    /// Upper edge of step `index`: the least value, in microseconds, that is above the step.
    fn edge(index: u64) -> u64;
}

/// Counts how often durations occurred, in constant memory.
#[derive(Debug)]
pub struct Histogram<S> {
    /// Counts, one per step, and one for values beyond the last.
    buckets: Box<[u64]>,
    count: u64,
    max: Duration,
    steps: core::marker::PhantomData<S>,
}

impl<S> Clone for Histogram<S> {
    fn clone(&self) -> Self {
        let Histogram { buckets, count, max, steps } = self;
        Histogram { buckets: buckets.clone(), count: *count, max: *max, steps: *steps }
    }
}

impl<S: Steps> Histogram<S> {
    pub fn new() -> Self {
        let buckets = vec![0; S::COUNT + 1].into();
        Histogram { buckets, count: 0, max: Duration::ZERO, steps: core::marker::PhantomData }
    }

    pub fn record(&mut self, value: Duration) {
        let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX);
        let index = usize::try_from(S::index(micros)).unwrap_or(S::COUNT).min(S::COUNT);
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket += 1;
        }
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// Adds the values of `other`.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.max = self.max.max(other.max);
        for (sum, count) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += count;
        }
    }

    /// Number of values recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest value recorded; zero if there is none.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// An upper bound on the `q` quantile of the values, where `q` is in `[0, 1]`: the upper edge
    /// of the step that the quantile falls in, or the largest value if that is less. Zero if no
    /// value was recorded.
    pub fn quantile(&self, q: f64) -> Duration {
        let rank = (self.count as f64 * q.clamp(0.0, 1.0)).ceil() as u64;
        let mut seen = 0;
        for (index, bucket) in (0_u64..).zip(self.buckets.iter().take(S::COUNT)) {
            seen += bucket;
            if seen >= rank.max(1) {
                return Duration::from_micros(S::edge(index)).min(self.max);
            }
        }
        self.max
    }
}
