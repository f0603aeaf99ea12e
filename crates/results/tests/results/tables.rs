//! The Parquet tables, read back: types, values, nulls, origin.

use crate::common;
use std::{fs::File, path::Path};

use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::{Field, Row},
};
use results::{Column, Table, Values, write_run};

fn read(path: &Path) -> (SerializedFileReader<File>, Vec<Row>) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    (reader, rows)
}

fn cell<'a>(row: &'a Row, name: &str) -> &'a Field {
    let found = row.get_column_iter().find(|(column, _)| *column == name);
    found.unwrap_or_else(|| panic!("no column {name}")).1
}

fn int(value: u64) -> Field {
    Field::Long(value as i64)
}

#[test]
fn tables_hold_what_was_measured() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let run = common::run(1, "ecmp", 7);
    write_run(&out, &run, None).unwrap();

    let (reader, flows) = read(&out.join("flows.parquet"));
    assert_eq!(flows.len(), run.flows.len());
    for (read, flow) in flows.iter().zip(&run.flows) {
        assert_eq!(*cell(read, "flow"), int(flow.flow));
        assert_eq!(*cell(read, "src"), Field::Str(flow.src.to_string()));
        assert_eq!(*cell(read, "algorithm"), Field::Str("vegas".to_owned()));
        assert_eq!(*cell(read, "end_ns"), flow.end_ns.map_or(Field::Null, int));
        assert_eq!(*cell(read, "fct_ns"), flow.fct_ns().map_or(Field::Null, int));
        assert_eq!(*cell(read, "slowdown"), flow.slowdown().map_or(Field::Null, Field::Double));
        assert_eq!(*cell(read, "ideal_fct_ns"), flow.ideal_fct_ns.map_or(Field::Null, int));
        assert_eq!(*cell(read, "srtt_us"), flow.srtt_us.map_or(Field::Null, int));
        assert_eq!(*cell(read, "final_cwnd"), int(17));
        assert_eq!(*cell(read, "mean_packet_delay_ns"), int(flow.mean_packet_delay_ns.unwrap()));
    }
    assert_eq!(*cell(&flows[49], "fct_ns"), Field::Null);
    let metadata = reader.metadata().file_metadata();
    assert_eq!(metadata.created_by(), Some("opentcp"));
    let origin = metadata.key_value_metadata().unwrap();
    assert!(origin.iter().any(|pair| pair.key == "seed" && pair.value.as_deref() == Some("7")));

    let (_, links) = read(&out.join("links.parquet"));
    for (read, link) in links.iter().zip(&run.links) {
        assert_eq!(*cell(read, "link"), Field::Str(link.link.to_string()));
        assert_eq!(*cell(read, "from_host"), Field::Bool(link.from_host));
        assert_eq!(*cell(read, "packets"), int(link.packets));
        assert_eq!(*cell(read, "utilization"), Field::Double(link.utilization));
    }

    let (_, series) = read(&out.join("link_series.parquet"));
    assert_eq!(series.len(), run.link_series.len());
    let name = run.links[run.link_series[1].link as usize].link.to_string();
    assert_eq!(*cell(&series[1], "link"), Field::Str(name));

    let (_, cwnd) = read(&out.join("cwnd.parquet"));
    assert_eq!(*cell(&cwnd[0], "state"), Field::Str("recovery".to_owned()));
    assert_eq!(*cell(&cwnd[0], "ssthresh"), Field::Null);
    assert_eq!(*cell(&cwnd[100], "ssthresh"), int(20));
    assert_eq!(*cell(&cwnd[100], "pacing_rate_bps"), Field::Null);
}

#[test]
fn a_table_longer_than_a_row_group_keeps_every_row_in_order() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let mut run = common::run(0, "ecmp", 1);
    let pattern = run.link_series.clone();
    run.link_series = pattern.iter().cycle().take(150_000).copied().collect();
    for (index, sample) in run.link_series.iter_mut().enumerate() {
        sample.time_ns = index as u64;
    }
    write_run(&out, &run, None).unwrap();
    let (reader, rows) = read(&out.join("link_series.parquet"));
    assert_eq!(reader.metadata().num_row_groups(), 3);
    let times = rows.iter().map(|row| cell(row, "time_ns").clone());
    assert!(times.eq((0..150_000).map(int)));
}

#[test]
fn an_empty_table_is_still_a_table() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let mut run = common::run(0, "ecmp", 1);
    run.flows.clear();
    write_run(&out, &run, None).unwrap();
    let (reader, rows) = read(&out.join("flows.parquet"));
    assert!(rows.is_empty());
    assert_eq!(reader.metadata().file_metadata().schema_descr().num_columns(), 28);
}

#[test]
fn tables_in_memory_are_those_of_the_files() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let run = common::run(1, "ecmp", 7);
    write_run(&out, &run, None).unwrap();
    let mut files = 0;
    for table in Table::ALL {
        assert_eq!(Table::named(table.name()), Some(table));
        let columns = run.columns(table);
        let file = out.join(format!("{}.parquet", table.name()));
        if !file.exists() {
            assert!(columns.iter().all(|column| *column == Column { values: none(&column.values), ..column.clone() }));
            continue;
        }
        files += 1;
        let (_, rows) = read(&file);
        for Column { name, values } in columns {
            let fields: Vec<Field> = match values {
                Values::Int(cells) => cells.into_iter().map(Field::Long).collect(),
                Values::IntOrNull(cells) => {
                    cells.into_iter().map(|cell| cell.map_or(Field::Null, Field::Long)).collect()
                }
                Values::Float(cells) => cells.into_iter().map(Field::Double).collect(),
                Values::FloatOrNull(cells) => {
                    cells.into_iter().map(|cell| cell.map_or(Field::Null, Field::Double)).collect()
                }
                Values::Bool(cells) => cells.into_iter().map(Field::Bool).collect(),
                Values::Text(cells) => cells.into_iter().map(|cell| Field::Str(cell.to_string())).collect(),
            };
            assert_eq!(fields.len(), rows.len());
            assert!(fields.iter().zip(&rows).all(|(field, row)| field == cell(row, name)), "{} {name}", table.name());
        }
    }
    assert!(files >= 4, "{files}");
}

/// No value of the same type.
fn none<'a>(values: &Values<'a>) -> Values<'a> {
    match values {
        Values::Int(_) => Values::Int(Vec::new()),
        Values::IntOrNull(_) => Values::IntOrNull(Vec::new()),
        Values::Float(_) => Values::Float(Vec::new()),
        Values::FloatOrNull(_) => Values::FloatOrNull(Vec::new()),
        Values::Bool(_) => Values::Bool(Vec::new()),
        Values::Text(_) => Values::Text(Vec::new()),
    }
}
