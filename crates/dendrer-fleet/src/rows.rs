//! The rows of an export and their form in Arrow: one place for the names and types of all columns.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, FixedSizeBinaryBuilder, Float64Builder, Int64Builder, StringBuilder,
};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use dendrer_object::{Digest, Value, json};

use crate::columns::{Cell, Column, ColumnKind};
use crate::manifest::Manifest;

/// The member of `unknown` for counters that are not what they seem.
pub(crate) const COUNTERS_MARK: &str = "/counters";

/// The member of [`COUNTERS_MARK`] with the names of the counters that cannot be known.
pub(crate) const HIDDEN: &str = "hidden";

/// The member of `unknown` for the whole state.
pub(crate) const WHOLE: &str = "";

/// A row of `ticks/`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TickRow {
    pub(crate) run: String,
    pub(crate) tick: i64,
    pub(crate) position: i64,
    pub(crate) type_name: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) ts: i64,
    pub(crate) delta: Option<String>,
    pub(crate) keyframe: Option<String>,
    pub(crate) state: Option<String>,
    pub(crate) unknown: Option<String>,
    pub(crate) cells: Vec<Option<Cell>>,
    pub(crate) id: Option<Digest>,
    pub(crate) root: Option<Digest>,
}

impl TickRow {
    /// The bytes of its texts, by which a row group ends before it is too large for the memory.
    pub(crate) fn weight(&self) -> u64 {
        let texts = [&self.delta, &self.keyframe, &self.state, &self.unknown];
        let texts: usize = texts.iter().filter_map(|text| text.as_ref().map(String::len)).sum();
        let cells = self.cells.iter().flatten().map(|cell| match cell {
            Cell::Text(text) => text.len(),
            _ => 8,
        });
        (texts + cells.sum::<usize>()) as u64 + 128
    }
}

fn kind_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Bool => DataType::Boolean,
        ColumnKind::Int => DataType::Int64,
        ColumnKind::Number => DataType::Float64,
        ColumnKind::Text | ColumnKind::Json => DataType::Utf8,
    }
}

const ID: DataType = DataType::FixedSizeBinary(32);

/// The columns of `ticks/`.
pub(crate) fn tick_schema(manifest: &Manifest) -> Arc<Schema> {
    let mut fields = vec![
        Field::new("run", DataType::Utf8, false),
        Field::new("tick", DataType::Int64, false),
        Field::new("position", DataType::Int64, false),
        Field::new("type", DataType::Utf8, true),
        Field::new("agent", DataType::Utf8, true),
        Field::new("ts", DataType::Int64, false),
        Field::new("delta", DataType::Utf8, true),
        Field::new("keyframe", DataType::Utf8, true),
        Field::new("unknown", DataType::Utf8, true),
    ];
    if manifest.states {
        fields.push(Field::new("state", DataType::Utf8, true));
    }
    let column = |column: &Column| Field::new(column.name(), kind_type(column.kind), true);
    fields.extend(manifest.columns.iter().map(column));
    if manifest.proof {
        fields.extend([Field::new("id", ID, false), Field::new("root", ID, true)]);
    }
    Arc::new(Schema::new(fields))
}

/// The columns of `runs/`.
pub(crate) fn run_schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("begin", DataType::Int64, false),
        Field::new("parent", DataType::Utf8, true),
        Field::new("first_own_tick", DataType::Int64, false),
        Field::new("ticks", DataType::Int64, false),
        Field::new("head_id", ID, false),
        Field::new("ended", DataType::Boolean, false),
        Field::new("stage", DataType::Int64, true),
        Field::new("pack", DataType::Utf8, true),
        Field::new("rules", DataType::Int64, false),
        Field::new("certainty", DataType::Utf8, true),
    ]))
}

/// The columns of `entries/`.
pub(crate) fn entry_schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("position", DataType::Int64, false),
        Field::new("id", ID, false),
        Field::new("kind", DataType::Utf8, false),
        Field::new("run", DataType::Utf8, true),
        Field::new("tick", DataType::Int64, true),
    ]))
}

pub(crate) fn texts<'t>(rows: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    let mut builder = StringBuilder::new();
    rows.for_each(|text| builder.append_option(text));
    Arc::new(builder.finish())
}

pub(crate) fn ints(rows: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let mut builder = Int64Builder::new();
    rows.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

pub(crate) fn bools(rows: impl Iterator<Item = Option<bool>>) -> ArrayRef {
    let mut builder = BooleanBuilder::new();
    rows.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

pub(crate) fn ids(rows: impl Iterator<Item = Option<Digest>>) -> ArrayRef {
    let mut builder = FixedSizeBinaryBuilder::new(32);
    for id in rows {
        match id {
            Some(id) => builder.append_value(id.0).expect("a digest has 32 bytes"),
            None => builder.append_null(),
        }
    }
    Arc::new(builder.finish())
}

fn cells(rows: &[TickRow], number: usize, kind: ColumnKind) -> ArrayRef {
    let cell = |row: &TickRow| row.cells[number].clone();
    match kind {
        ColumnKind::Bool => bools(rows.iter().map(|row| match cell(row) {
            Some(Cell::Bool(value)) => Some(value),
            _ => None,
        })),
        ColumnKind::Int => ints(rows.iter().map(|row| match cell(row) {
            Some(Cell::Int(value)) => Some(value),
            _ => None,
        })),
        ColumnKind::Number => {
            let mut builder = Float64Builder::new();
            rows.iter().for_each(|row| {
                builder.append_option(match cell(row) {
                    Some(Cell::Number(value)) => Some(value),
                    _ => None,
                });
            });
            Arc::new(builder.finish())
        }
        ColumnKind::Text | ColumnKind::Json => texts(rows.iter().map(|row| match &row.cells[number] {
            Some(Cell::Text(text)) => Some(text.as_str()),
            _ => None,
        })),
    }
}

/// Makes a batch of rows.
pub(crate) fn tick_batch(manifest: &Manifest, schema: &Arc<Schema>, rows: &[TickRow]) -> RecordBatch {
    let mut arrays = vec![
        texts(rows.iter().map(|row| Some(row.run.as_str()))),
        ints(rows.iter().map(|row| Some(row.tick))),
        ints(rows.iter().map(|row| Some(row.position))),
        texts(rows.iter().map(|row| row.type_name.as_deref())),
        texts(rows.iter().map(|row| row.agent.as_deref())),
        ints(rows.iter().map(|row| Some(row.ts))),
        texts(rows.iter().map(|row| row.delta.as_deref())),
        texts(rows.iter().map(|row| row.keyframe.as_deref())),
        texts(rows.iter().map(|row| row.unknown.as_deref())),
    ];
    if manifest.states {
        arrays.push(texts(rows.iter().map(|row| row.state.as_deref())));
    }
    let typed = manifest.columns.iter().enumerate().map(|(number, column)| cells(rows, number, column.kind));
    arrays.extend(typed);
    if manifest.proof {
        arrays.push(ids(rows.iter().map(|row| row.id)));
        arrays.push(ids(rows.iter().map(|row| row.root)));
    }
    RecordBatch::try_new(Arc::clone(schema), arrays).expect("each column has its type and as many rows")
}

/// Reads a text of a batch; `None` if it is null.
pub(crate) fn text_at<'b>(batch: &'b RecordBatch, name: &str, row: usize) -> Result<Option<&'b str>, String> {
    let array = array_of::<StringArray>(batch, name)?;
    Ok(array.is_valid(row).then(|| array.value(row)))
}

/// Reads an integer of a batch; `None` if it is null.
pub(crate) fn int_at(batch: &RecordBatch, name: &str, row: usize) -> Result<Option<i64>, String> {
    let array = array_of::<Int64Array>(batch, name)?;
    Ok(array.is_valid(row).then(|| array.value(row)))
}

/// Reads a typed column of a batch.
pub(crate) fn cell_at(batch: &RecordBatch, column: &Column, row: usize) -> Result<Option<Value>, String> {
    let name = column.name();
    let cell = match column.kind {
        ColumnKind::Bool => {
            let array = array_of::<BooleanArray>(batch, &name)?;
            array.is_valid(row).then(|| Cell::Bool(array.value(row)))
        }
        ColumnKind::Int => int_at(batch, &name, row)?.map(Cell::Int),
        ColumnKind::Number => {
            let array = array_of::<Float64Array>(batch, &name)?;
            array.is_valid(row).then(|| Cell::Number(array.value(row)))
        }
        ColumnKind::Text | ColumnKind::Json => {
            text_at(batch, &name, row)?.map(|text| Cell::Text(text.to_owned()))
        }
    };
    let fault = || format!("{name} has a value that is not {}", column.kind);
    cell.map(|cell| cell.value(column.kind).ok_or_else(fault)).transpose()
}

/// Reads a column of a batch by its name and type.
pub(crate) fn array_of<'b, A: Array + 'static>(batch: &'b RecordBatch, name: &str) -> Result<&'b A, String> {
    let array = batch.column_by_name(name).ok_or_else(|| format!("there is no column {name}"))?;
    array.as_any().downcast_ref::<A>().ok_or_else(|| format!("the column {name} has another type"))
}

/// Reads canonical JSON of a text column.
pub(crate) fn json_of(text: &str, name: &str) -> Result<Value, String> {
    json::parse_canonical(text.as_bytes()).map_err(|error| format!("{name}: {error}"))
}
