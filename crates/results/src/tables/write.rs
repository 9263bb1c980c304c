//! Writes the tables.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anabranch_sim::report::RunReport;
use parquet::basic::Compression;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::columns::Column;
use super::{SAMPLES, SCALARS, SERIES, SweepColumns};
use crate::file::{Checksum, Whole};
use crate::{Provenance, ResultsError, VERSION};

/// Rows of a row group. It bounds the rows in memory, and those that a reader must decode for one
/// value.
const GROUP_ROWS: usize = 1 << 18;

/// The three tables while they are being written. If they are dropped before
/// [`finish`](Self::finish), the earlier files stay in place.
#[derive(Debug)]
pub struct Tables {
    keys: SweepColumns,
    scalars: Table,
    series: Table,
    samples: Table,
}

impl Tables {
    /// Begins the tables in `directory` for runs at `points`, each given by its sweep keys with
    /// their values.
    ///
    /// # Errors
    /// When the tables cannot be written.
    pub fn begin(
        directory: &Path,
        provenance: &Provenance,
        points: &[Vec<(String, String)>],
    ) -> Result<Self, ResultsError> {
        let keys = SweepColumns::of(points);
        let metadata = metadata(provenance, &keys);
        let table = |name: &str, extra: Option<(&'static str, Column)>| {
            Table::begin(&directory.join(name), &keys, extra, &metadata)
        };
        Ok(Tables {
            scalars: table(SCALARS, None)?,
            series: table(SERIES, Some(("time_s", Column::Double(Vec::new()))))?,
            samples: table(SAMPLES, Some(("index", Column::Whole(Vec::new(), false))))?,
            keys,
        })
    }

    /// Adds a run at the point with index `point`.
    ///
    /// # Errors
    /// When the rows cannot be written.
    pub fn append(&mut self, point: usize, report: &RunReport) -> Result<(), ResultsError> {
        let key = |(index, (_, value)): (usize, &(String, String))| match self.keys.is_number(index)
        {
            true => Key::Number(value.parse().unwrap_or(f64::NAN)),
            false => Key::Text(ByteArray::from(value.as_str())),
        };
        let keys: Vec<Key> = report.point.iter().enumerate().map(key).collect();
        let run = Run { point: point as u64, seed: report.seed, keys: &keys };
        for scalar in &report.scalars {
            let what = What::new(&scalar.subject, &scalar.metric);
            self.scalars.push(&run, &what, Extra::None, scalar.value)?;
        }
        for series in &report.series {
            let what = What::new(&series.subject, &series.metric);
            for (time, value) in series.times.iter().zip(&series.values) {
                self.series.push(&run, &what, Extra::Time(*time), *value)?;
            }
        }
        for samples in &report.samples {
            let what = What::new(&samples.subject, &samples.metric);
            for (index, value) in samples.values.iter().enumerate() {
                self.samples.push(&run, &what, Extra::Index(index as u64), *value)?;
            }
        }
        Ok(())
    }

    /// Completes the tables and renames them to their final names. Returns the files' checksums by
    /// name, for the [`Summary`](crate::Summary).
    ///
    /// # Errors
    /// When the tables cannot be written.
    pub fn finish(self) -> Result<BTreeMap<String, String>, ResultsError> {
        // All three are completed before the first one replaces its predecessor.
        let tables = [(SCALARS, self.scalars), (SERIES, self.series), (SAMPLES, self.samples)];
        let files = tables.map(|(name, table)| (name, table.close()));
        let mut checksums = BTreeMap::new();
        for (name, file) in files {
            let file = file?;
            let path = file.path().to_owned();
            file.finish(true)?;
            checksums.insert(name.to_owned(), format!("{:016x}", Checksum::of_file(&path)?.0));
        }
        Ok(checksums)
    }
}

/// The files' key-value metadata.
fn metadata(provenance: &Provenance, keys: &SweepColumns) -> Vec<KeyValue> {
    let columns: serde_json::Map<String, serde_json::Value> = keys
        .iter()
        .map(|column| (column.name.clone(), serde_json::Value::from(column.key.as_str())))
        .collect();
    let pairs = [
        ("anabranch.scenario", provenance.scenario.clone()),
        ("anabranch.hash", provenance.hash.clone()),
        ("anabranch.settings", provenance.settings.join("\n")),
        ("anabranch.version", provenance.version.clone()),
        ("anabranch.commit", provenance.commit.clone()),
        ("anabranch.sweep_columns", serde_json::Value::Object(columns).to_string()),
        ("anabranch.scenario_text", provenance.text.clone()),
    ];
    pairs.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect()
}

#[derive(Debug)]
enum Key {
    Number(f64),
    Text(ByteArray),
}

struct Run<'a> {
    point: u64,
    seed: u64,
    keys: &'a [Key],
}

struct What {
    subject: ByteArray,
    metric: ByteArray,
}

impl What {
    fn new(subject: &str, metric: &str) -> Self {
        What { subject: ByteArray::from(subject), metric: ByteArray::from(metric) }
    }
}

#[derive(Clone, Copy)]
enum Extra {
    None,
    Time(f64),
    Index(u64),
}

#[derive(Debug)]
struct Table {
    whole: Whole,
    writer: SerializedFileWriter<File>,
    /// The columns in the schema's order: point, keys, seed, subject, metric, the extra column if
    /// any, value.
    columns: Vec<Column>,
    rows: usize,
}

impl Table {
    fn begin(
        path: &Path,
        keys: &SweepColumns,
        extra: Option<(&'static str, Column)>,
        metadata: &[KeyValue],
    ) -> Result<Self, ResultsError> {
        let mut columns = vec![("point".to_owned(), Column::Whole(Vec::new(), false))];
        for key in keys.iter() {
            let column = match key.is_number {
                true => Column::Double(Vec::new()),
                false => Column::Text(Vec::new()),
            };
            columns.push((key.name.clone(), column));
        }
        columns.push(("seed".to_owned(), Column::Whole(Vec::new(), true)));
        columns.push(("subject".to_owned(), Column::Text(Vec::new())));
        columns.push(("metric".to_owned(), Column::Text(Vec::new())));
        columns.extend(extra.map(|(name, column)| (name.to_owned(), column)));
        columns.push(("value".to_owned(), Column::Double(Vec::new())));
        let whole = Whole::begin(path)?;
        let open = |file: File| {
            let fields = columns.iter().map(|(name, column)| column.field(name));
            let fields = fields.collect::<Result<Vec<_>, ParquetError>>()?;
            let schema = Type::group_type_builder("figures").with_fields(fields).build()?;
            // These properties are set here because the writer's defaults may differ between its
            // versions.
            let properties = WriterProperties::builder()
                .set_writer_version(WriterVersion::PARQUET_1_0)
                .set_compression(Compression::SNAPPY)
                .set_created_by(format!("anabranch version {VERSION}"))
                .set_key_value_metadata(Some(metadata.to_vec()))
                .build();
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
        };
        let writer = open(whole.writer()?).map_err(|error| failed(path, error))?;
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        Ok(Table { whole, writer, columns, rows: 0 })
    }

    fn push(
        &mut self,
        run: &Run<'_>,
        what: &What,
        extra: Extra,
        value: f64,
    ) -> Result<(), ResultsError> {
        let mut columns = self.columns.iter_mut();
        let mut next = |fill: &dyn Fn(&mut Column)| columns.next().map(fill);
        next(&|column| column.push_whole(run.point));
        for key in run.keys {
            next(&|column| match key {
                Key::Number(value) => column.push_double(*value),
                Key::Text(text) => column.push_text(text),
            });
        }
        next(&|column| column.push_whole(run.seed));
        next(&|column| column.push_text(&what.subject));
        next(&|column| column.push_text(&what.metric));
        match extra {
            Extra::None => {}
            Extra::Time(time) => drop(next(&|column| column.push_double(time))),
            Extra::Index(index) => drop(next(&|column| column.push_whole(index))),
        }
        next(&|column| column.push_double(value));
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ResultsError> {
        let mut write = || {
            let mut group = self.writer.next_row_group()?;
            for column in &mut self.columns {
                column.flush(&mut group)?;
            }
            group.close()
        };
        write().map_err(|error| failed(self.whole.path(), error))?;
        self.rows = 0;
        Ok(())
    }

    fn close(mut self) -> Result<Whole, ResultsError> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.close().map_err(|error| failed(self.whole.path(), error))?;
        Ok(self.whole)
    }
}

/// The error of the operating system if the writer passed one on, else the writer's own.
fn failed(path: &Path, error: ParquetError) -> ResultsError {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(source) => *source,
            Err(other) => std::io::Error::other(other.to_string()),
        },
        other => std::io::Error::other(other.to_string()),
    };
    ResultsError::Io { path: path.to_owned(), action: "write", source }
}
