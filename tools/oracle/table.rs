//! Tables of measurements: comma-separated values whose header says what they are.

/// Experiment that a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One flow over one bottleneck with random loss.
    Single,
    /// Ten flows over a dumbbell with drop-tail, RED or RED with ECN.
    Dumbbell,
    /// Flows as in `Dumbbell`: their fairness in bins of 1 s and 10 s, and over the whole run.
    Fairness,
    /// One flow over a bottleneck whose loss alternates.
    TwoState,
    /// Stations that share a radio channel and always have a message.
    Cell,
    /// TCP over DSR: on a ring of stations, or among moving ones.
    Mesh,
}

const COLUMNS: [(Kind, &str); 6] = [
    (
        Kind::Single,
        "sim,bw_mbps,owd_ms,loss,delack,queue_pkts,n_seeds,goodput_mean_mbps,goodput_std_mbps,\
         timeouts_mean,retx_mean,data_pkts_mean",
    ),
    (
        Kind::Dumbbell,
        "sim,bw_mbps,nflows,rtt_ms,queue,delack,queue_pkts,seed,total_goodput_mbps,jain,drops,\
         marks,timeouts,retx_pkts,ecn_responses,data_pkts,per_flow_goodput_mbps",
    ),
    (
        Kind::Fairness,
        "queue,seed,n_flows,mean_jain_1s,min_jain_1s,mean_jain_10s,jain_20_200s,\
         mean_flow_mbps_20_200s,std_of_1s_bins_within_flow_mbps,min_flow,max_flow",
    ),
    (
        Kind::TwoState,
        "sim,bw_mbps,owd_ms,loss_lo:hi:hold_s,delack,queue_pkts,minrto_s,seed,goodput_mbps,\
         timeouts,retx_pkts,data_pkts,cwnd_cuts",
    ),
    (Kind::Cell, "sim,n,rate_mbps,ack_rate_mbps,seed,throughput_mbps"),
    (
        Kind::Mesh,
        "sim,topo,rate_mbps,rts,losskind,loss,window_pkts,nflows,seed,acked_pkts,goodput_mbps,\
         timeouts,retx_pkts,data_pkts",
    ),
];

/// A table, split into fields.
#[derive(Debug)]
pub struct Table {
    path: String,
    kind: Kind,
    columns: Vec<String>,
    rows: Vec<(usize, Vec<String>)>,
}

/// One row of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    table: &'a Table,
    line: usize,
    fields: &'a [String],
}

impl Table {
    /// Splits `text`; errors name `path`.
    pub fn parse(path: &str, text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let (_, header) = lines.next().ok_or_else(|| format!("{path}: the file is empty"))?;
        let columns: Vec<String> = header.split(',').map(|name| name.trim().to_owned()).collect();
        let kind = recognise(path, &columns)?;
        let mut rows = Vec::new();
        for (index, line) in lines {
            let fields: Vec<String> =
                line.split(',').map(|field| field.trim().to_owned()).collect();
            if fields.len() != columns.len() {
                return Err(format!(
                    "{path}:{}: {} fields; the header names {}",
                    index + 1,
                    fields.len(),
                    columns.len()
                ));
            }
            rows.push((index + 1, fields));
        }
        if rows.is_empty() {
            return Err(format!("{path}: there is a header but no row"));
        }
        Ok(Table { path: path.to_owned(), kind, columns, rows })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.rows.iter().map(|(line, fields)| Row { table: self, line: *line, fields })
    }
}

/// The kind that has these columns, in any order.
fn recognise(path: &str, columns: &[String]) -> Result<Kind, String> {
    let shared = |names: &str| names.split(',').filter(|n| columns.iter().any(|c| c == n)).count();
    let (kind, names) = COLUMNS
        .into_iter()
        .max_by_key(|(_, names)| (shared(names), core::cmp::Reverse(names.len())))
        .ok_or("no kinds")?;
    let known: Vec<&str> = names.split(',').collect();
    if let Some(unknown) = columns.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("{path}:1: unknown column '{unknown}'; known: {}", known.join(", ")));
    }
    if let Some(missing) = known.iter().find(|name| !columns.iter().any(|column| column == *name)) {
        return Err(format!("{path}:1: column '{missing}' is missing"));
    }
    match columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
        Some((_, twice)) => Err(format!("{path}:1: column '{twice}' stands there twice")),
        None => Ok(kind),
    }
}

impl<'a> Row<'a> {
    /// The text in a column.
    pub fn text(&self, column: &str) -> Result<&'a str, String> {
        let at = self.table.columns.iter().position(|name| name == column);
        let field = at.and_then(|at| self.fields.get(at));
        field.map(String::as_str).ok_or_else(|| self.error(&format!("no column '{column}'")))
    }

    /// The number in a column, within `[least, most]`.
    pub fn number(&self, column: &str, least: f64, most: f64) -> Result<f64, String> {
        let text = self.text(column)?;
        let value: Option<f64> = text.parse().ok();
        value.filter(|value| (least..=most).contains(value)).ok_or_else(|| {
            self.error(&format!("{column}: '{text}' is not a number from {least} to {most}"))
        })
    }

    /// A message about this row.
    pub fn error(&self, what: &str) -> String {
        format!("{}:{}: {what}", self.table.path, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> String {
        COLUMNS[0].1.to_owned()
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let row = "ns2-sack1,1.0,20,0.01,0,10,10,0.9,0.01,1,2,3";
        let cases = [
            (String::new(), "empty"),
            (format!("{},more\n{row},1\n", header()), "unknown column 'more'"),
            (format!("{}\n", header().replace(",loss,", ",")), "column 'loss' is missing"),
            (format!("{}\n{row},9\n", header()), "t.csv:2: 13 fields"),
            (header(), "no row"),
        ];
        for (text, expected) in cases {
            let error = Table::parse("t.csv", &text).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
        let text = format!("{}\n{}\n", header(), row.replace("0.01,0,10", "many,0,10"));
        let table = Table::parse("t.csv", &text).expect("a table");
        let row = table.rows().next().expect("a row");
        let error = row.number("loss", 0.0, 1.0).expect_err("not a number");
        assert_eq!(error, "t.csv:2: loss: 'many' is not a number from 0 to 1");
    }
}
