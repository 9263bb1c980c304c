//! Columns that are filled row by row and written as row groups.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{Type, TypePtr};

/// One column's values since the last row group.
#[derive(Debug)]
pub(super) enum Column {
    /// Floating-point numbers.
    Double(Vec<f64>),
    /// Whole numbers; `true` if they are unsigned, such as seeds.
    Whole(Vec<i64>, bool),
    /// Text, shared between the rows that repeat it.
    Text(Vec<ByteArray>),
}

impl Column {
    /// The column's type under `name`; every value is present.
    pub(super) fn field(&self, name: &str) -> Result<TypePtr> {
        let (physical, logical) = match self {
            Column::Double(_) => (PhysicalType::DOUBLE, None),
            Column::Whole(_, false) => (PhysicalType::INT64, None),
            Column::Whole(_, true) => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
            Column::Text(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()?;
        Ok(Arc::new(field))
    }

    /// Writes the values and clears the column.
    pub(super) fn flush(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, std::fs::File>,
    ) -> Result<()> {
        let Some(mut out) = group.next_column()? else { return Ok(()) };
        match self {
            Column::Double(values) => {
                out.typed::<DoubleType>().write_batch(values, None, None)?;
                values.clear();
            }
            Column::Whole(values, _) => {
                out.typed::<Int64Type>().write_batch(values, None, None)?;
                values.clear();
            }
            Column::Text(values) => {
                out.typed::<ByteArrayType>().write_batch(values, None, None)?;
                values.clear();
            }
        }
        out.close()
    }

    /// Adds a number to a column of numbers.
    pub(super) fn push_double(&mut self, value: f64) {
        if let Column::Double(values) = self {
            values.push(value);
        }
    }

    /// Adds a whole number to a column of whole numbers.
    pub(super) fn push_whole(&mut self, value: u64) {
        if let Column::Whole(values, _) = self {
            values.push(value.cast_signed());
        }
    }

    /// Adds a text to a column of texts.
    pub(super) fn push_text(&mut self, value: &ByteArray) {
        if let Column::Text(values) = self {
            values.push(value.clone());
        }
    }
}
