//! Builds the three tables of reports, with the columns of the Parquet files in the same order.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_results::RunId;
use anabranch_results::tables::SweepColumns;
use anabranch_sim::report::RunReport;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};

use super::Table;
use crate::bytes::{Part, shared};

/// Reports with the runs that they are of.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    /// The columns of the sweep's keys.
    pub(crate) columns: Arc<SweepColumns>,
    /// In the order of the table.
    pub(crate) runs: Vec<(RunId, Arc<RunReport>)>,
}

/// Texts, each once; columns refer to them by number.
#[derive(Debug, Default)]
struct Words {
    numbers: BTreeMap<String, i32>,
    words: Vec<String>,
}

impl Words {
    fn number(&mut self, word: &str) -> i32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = i32::try_from(self.words.len()).unwrap_or(i32::MAX);
        self.numbers.insert(word.to_owned(), number);
        self.words.push(word.to_owned());
        number
    }

    fn array(&self) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(&self.words))
    }
}

/// The texts of a table's columns.
#[derive(Debug)]
struct Texts {
    /// The texts of each sweep key.
    keys: Vec<ArrayRef>,
    subjects: ArrayRef,
    metrics: ArrayRef,
}

/// The columns that all tables share; texts are given by their numbers.
#[derive(Debug, Default)]
struct Common {
    points: Vec<i64>,
    seeds: Vec<u64>,
    /// The values of each sweep key: numbers, or the indices of texts.
    keys: Vec<Key>,
    subjects: Vec<i32>,
    metrics: Vec<i32>,
}

#[derive(Debug)]
enum Key {
    Numbers(Vec<f64>),
    Texts(Vec<i32>),
}

/// Makes tables of reports.
struct Builder<'a> {
    columns: &'a SweepColumns,
    keys: Vec<Words>,
    subjects: Words,
    metrics: Words,
}

/// Subject and metric of a row.
type About<'a> = (&'a str, &'a str);

impl<'a> Builder<'a> {
    /// Collects every text: the values of keys, and the subjects and metrics that `about` finds in each run.
    fn new(rows: &'a Rows, about: impl Fn(&RunReport) -> Vec<About<'_>>) -> Self {
        let keys = rows.columns.iter().map(|_| Words::default()).collect();
        let columns = rows.columns.as_ref();
        let (subjects, metrics) = (Words::default(), Words::default());
        let mut builder = Builder { columns, keys, subjects, metrics };
        for (_, report) in &rows.runs {
            for (words, (_, value)) in builder.keys.iter_mut().zip(&report.point) {
                words.number(value);
            }
            for (subject, metric) in about(report) {
                builder.subjects.number(subject);
                builder.metrics.number(metric);
            }
        }
        builder
    }

    fn texts(&self) -> Texts {
        Texts {
            keys: self.keys.iter().map(Words::array).collect(),
            subjects: self.subjects.array(),
            metrics: self.metrics.array(),
        }
    }

    fn common(&self) -> Common {
        let key = |column: &anabranch_results::tables::SweepColumn| match column.is_number {
            true => Key::Numbers(Vec::new()),
            false => Key::Texts(Vec::new()),
        };
        Common { keys: self.columns.iter().map(key).collect(), ..Common::default() }
    }

    /// Adds `count` rows about the same subject and metric of a run.
    fn add(
        &mut self,
        common: &mut Common,
        run: (RunId, &RunReport),
        about: About<'_>,
        count: usize,
    ) {
        let (id, report) = run;
        let point = i64::try_from(id.point).unwrap_or(i64::MAX);
        common.points.extend(std::iter::repeat_n(point, count));
        common.seeds.extend(std::iter::repeat_n(id.seed, count));
        for ((key, words), (_, value)) in
            common.keys.iter_mut().zip(&mut self.keys).zip(&report.point)
        {
            match key {
                Key::Numbers(numbers) => {
                    let number = value.parse().unwrap_or(f64::NAN);
                    numbers.extend(std::iter::repeat_n(number, count));
                }
                Key::Texts(texts) => {
                    texts.extend(std::iter::repeat_n(words.number(value), count));
                }
            }
        }
        let (subject, metric) = about;
        let (subject, metric) = (self.subjects.number(subject), self.metrics.number(metric));
        common.subjects.extend(std::iter::repeat_n(subject, count));
        common.metrics.extend(std::iter::repeat_n(metric, count));
    }

    fn batch(
        &self,
        texts: &Texts,
        common: Common,
        further: Vec<(&str, ArrayRef)>,
    ) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<(&str, ArrayRef)> =
            vec![("point", Arc::new(Int64Array::from(common.points)))];
        for ((column, key), words) in self.columns.iter().zip(common.keys).zip(&texts.keys) {
            let array: ArrayRef = match key {
                Key::Numbers(numbers) => Arc::new(Float64Array::from(numbers)),
                Key::Texts(numbers) => dictionary(numbers, words)?,
            };
            columns.push((&column.name, array));
        }
        columns.push(("seed", Arc::new(UInt64Array::from(common.seeds))));
        columns.push(("subject", dictionary(common.subjects, &texts.subjects)?));
        columns.push(("metric", dictionary(common.metrics, &texts.metrics)?));
        columns.extend(further);
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(schema), arrays)
    }
}

fn dictionary(numbers: Vec<i32>, words: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let array =
        DictionaryArray::<Int32Type>::try_new(Int32Array::from(numbers), Arc::clone(words))?;
    Ok(Arc::new(array))
}

fn table(batches: Vec<RecordBatch>, empty: RecordBatch) -> Table {
    Table::new(empty.schema(), batches)
}

/// Single figures, a row each.
pub(crate) fn scalars(rows: &Rows) -> Result<Table, ArrowError> {
    let mut builder = Builder::new(rows, |report| {
        report.scalars.iter().map(|s| (s.subject.as_str(), s.metric.as_str())).collect()
    });
    let (mut common, mut values) = (builder.common(), Vec::new());
    for (id, report) in &rows.runs {
        for scalar in &report.scalars {
            builder.add(&mut common, (*id, report), (&scalar.subject, &scalar.metric), 1);
            values.push(scalar.value);
        }
    }
    let values: ArrayRef = Arc::new(Float64Array::from(values));
    let batch = builder.batch(&builder.texts(), common, vec![("value", values)])?;
    Ok(Table::new(batch.schema(), vec![batch]))
}

/// Figures over time: a batch for each, whose times and values are in the reports' memory.
pub(crate) fn series(rows: &Rows) -> Result<Table, ArrowError> {
    let mut builder = Builder::new(rows, |report| {
        report.series.iter().map(|s| (s.subject.as_str(), s.metric.as_str())).collect()
    });
    let texts = builder.texts();
    let mut batches = Vec::new();
    for (id, report) in &rows.runs {
        for (index, series) in report.series.iter().enumerate() {
            let mut common = builder.common();
            let about = (series.subject.as_str(), series.metric.as_str());
            builder.add(&mut common, (*id, report), about, series.values.len());
            let further: Vec<(&str, ArrayRef)> = vec![
                ("time_s", Arc::new(shared(report, Part::Times(index)))),
                ("value", Arc::new(shared(report, Part::Series(index)))),
            ];
            batches.push(builder.batch(&texts, common, further)?);
        }
    }
    let none = || -> ArrayRef { Arc::new(Float64Array::from(Vec::<f64>::new())) };
    let further = vec![("time_s", none()), ("value", none())];
    Ok(table(batches, builder.batch(&texts, builder.common(), further)?))
}

/// Samples: a batch for each, whose values are in the reports' memory.
pub(crate) fn samples(rows: &Rows) -> Result<Table, ArrowError> {
    let mut builder = Builder::new(rows, |report| {
        report.samples.iter().map(|s| (s.subject.as_str(), s.metric.as_str())).collect()
    });
    let texts = builder.texts();
    let mut batches = Vec::new();
    for (id, report) in &rows.runs {
        for (index, samples) in report.samples.iter().enumerate() {
            let mut common = builder.common();
            let about = (samples.subject.as_str(), samples.metric.as_str());
            let count = samples.values.len();
            builder.add(&mut common, (*id, report), about, count);
            let indices = (0..i64::try_from(count).unwrap_or(i64::MAX)).collect::<Vec<i64>>();
            let further: Vec<(&str, ArrayRef)> = vec![
                ("index", Arc::new(Int64Array::from(indices))),
                ("value", Arc::new(shared(report, Part::Samples(index)))),
            ];
            batches.push(builder.batch(&texts, common, further)?);
        }
    }
    let further: Vec<(&str, ArrayRef)> = vec![
        ("index", Arc::new(Int64Array::from(Vec::<i64>::new()))),
        ("value", Arc::new(Float64Array::from(Vec::<f64>::new()))),
    ];
    Ok(table(batches, builder.batch(&texts, builder.common(), further)?))
}
