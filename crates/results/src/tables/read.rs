//! Reads the tables.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use serde::Deserialize;

use crate::file::Checksum;
use crate::{ResultsError, Summary};

/// One value of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// Index of the sweep's point.
    pub point: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Subject of the value, such as `all` or `link.a`.
    pub subject: &'a str,
    /// Name of the metric, such as `goodput_mbps`.
    pub metric: &'a str,
    /// Time in seconds for series, index for samples, and 0 for scalars.
    pub at: f64,
    /// The value.
    pub value: f64,
}

/// The points of a sweep: the keys, and the values of each point as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Points {
    /// The sweep's keys in the scenario's order.
    pub keys: Vec<String>,
    /// A value for each key, by the point's index. Only points of which rows were read are
    /// included.
    pub values: BTreeMap<usize, Vec<String>>,
}

/// Reads the table `name` in `directory` and passes its rows to `visit` in their order.
///
/// # Errors
/// When the file cannot be read, or is not the one for which `summary.json` was written. Changed
/// tables are refused, since the Parquet reader trusts their metadata.
pub fn read(
    directory: &Path,
    name: &str,
    visit: &mut dyn FnMut(&Row<'_>),
) -> Result<Points, ResultsError> {
    let path = directory.join(name);
    let damaged = |why: String| ResultsError::Damaged { path: path.clone(), why };
    if format!("{:016x}", Checksum::of_file(&path)?.0) != checksum(directory, name)? {
        return Err(damaged(format!("it is not the file that {} describes", Summary::FILE)));
    }
    let file = File::open(&path).map_err(ResultsError::io(&path, "read"))?;
    rows(file, visit).map_err(|error| damaged(error.to_string()))
}

/// The checksum that the summary has for a table; empty if it has none.
fn checksum(directory: &Path, name: &str) -> Result<String, ResultsError> {
    #[derive(Deserialize)]
    struct Stated {
        tables: BTreeMap<String, String>,
    }
    let path = directory.join(Summary::FILE);
    let text = fs::read(&path).map_err(ResultsError::io(&path, "read"))?;
    let stated: Stated = serde_json::from_slice(&text)
        .map_err(|error| ResultsError::Damaged { path, why: error.to_string() })?;
    Ok(stated.tables.get(name).cloned().unwrap_or_default())
}

fn rows(file: File, visit: &mut dyn FnMut(&Row<'_>)) -> ParquetResult<Points> {
    let reader = SerializedFileReader::new(file)?;
    let metadata = reader.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    let place = |name: &str| columns.iter().position(|column| column.name() == name);
    let needed = |name: &str| {
        place(name).ok_or_else(|| ParquetError::General(format!("there is no column {name}")))
    };
    let (point, seed) = (needed("point")?, needed("seed")?);
    let (subject, metric, value) = (needed("subject")?, needed("metric")?, needed("value")?);
    let at = place("time_s").or_else(|| place("index"));
    let pairs = metadata.key_value_metadata().into_iter().flatten();
    let sweep = pairs
        .filter(|pair| pair.key == "anabranch.sweep_columns")
        .find_map(|pair| {
            serde_json::from_str::<BTreeMap<String, String>>(pair.value.as_ref()?).ok()
        })
        .unwrap_or_default();
    let key_places: Vec<usize> = (0..columns.len())
        .filter(|index| columns.get(*index).is_some_and(|c| sweep.contains_key(c.name())))
        .collect();
    let key = |index: &usize| columns.get(*index).and_then(|c| sweep.get(c.name())).cloned();
    let mut points =
        Points { keys: key_places.iter().filter_map(key).collect(), values: BTreeMap::new() };
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let load = |index: usize| Cells::load(&*group, index);
        let keys =
            key_places.iter().map(|index| load(*index)).collect::<ParquetResult<Vec<_>>>()?;
        let (point, seed, value) = (load(point)?, load(seed)?, load(value)?);
        let (subject, metric) = (load(subject)?, load(metric)?);
        let at = at.map(load).transpose()?;
        for row in 0..value.len() {
            let point = point.whole(row) as usize;
            let values = || keys.iter().map(|key| key.text_of(row)).collect();
            points.values.entry(point).or_insert_with(values);
            visit(&Row {
                point,
                seed: seed.whole(row),
                subject: subject.text(row),
                metric: metric.text(row),
                at: at.as_ref().map_or(0.0, |at| at.number(row)),
                value: value.number(row),
            });
        }
    }
    Ok(points)
}

/// The cells of one column in one row group.
enum Cells {
    Double(Vec<f64>),
    Whole(Vec<i64>),
    Text(Vec<ByteArray>),
}

impl Cells {
    fn load(group: &dyn RowGroupReader, index: usize) -> ParquetResult<Self> {
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        Ok(match group.get_column_reader(index)? {
            ColumnReader::DoubleColumnReader(mut reader) => {
                let mut values = Vec::new();
                reader.read_records(rows, None, None, &mut values)?;
                Cells::Double(values)
            }
            ColumnReader::Int64ColumnReader(mut reader) => {
                let mut values = Vec::new();
                reader.read_records(rows, None, None, &mut values)?;
                Cells::Whole(values)
            }
            ColumnReader::ByteArrayColumnReader(mut reader) => {
                let mut values = Vec::new();
                reader.read_records(rows, None, None, &mut values)?;
                Cells::Text(values)
            }
            _ => return Err(ParquetError::General("a column has another type".to_owned())),
        })
    }

    fn len(&self) -> usize {
        match self {
            Cells::Double(values) => values.len(),
            Cells::Whole(values) => values.len(),
            Cells::Text(values) => values.len(),
        }
    }

    fn number(&self, row: usize) -> f64 {
        match self {
            Cells::Double(values) => values.get(row).copied().unwrap_or(f64::NAN),
            Cells::Whole(values) => values.get(row).map_or(f64::NAN, |value| *value as f64),
            Cells::Text(_) => f64::NAN,
        }
    }

    fn whole(&self, row: usize) -> u64 {
        match self {
            Cells::Whole(values) => values.get(row).map_or(0, |value| value.cast_unsigned()),
            _ => 0,
        }
    }

    fn text(&self, row: usize) -> &str {
        match self {
            Cells::Text(values) => values.get(row).and_then(|v| v.as_utf8().ok()).unwrap_or(""),
            _ => "",
        }
    }

    fn text_of(&self, row: usize) -> String {
        match self {
            Cells::Text(_) => self.text(row).to_owned(),
            _ => self.number(row).to_string(),
        }
    }
}
