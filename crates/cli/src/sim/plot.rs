//! `sim plot`: draws the figures of a results directory.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_plot::{Figure, Map};
use anabranch_results::figures::{self, Data, Sweep};
use anabranch_results::tables::{self, Points, Row};
use anabranch_results::{Manifest, ResultsError, RunId};

use super::args::PlotArgs;
use super::drawing::{Drawing, Format};
use super::index;
use super::run::failure;
use crate::failure::Failure;
use crate::{format, output};

/// Draws what `args` ask for.
///
/// # Errors
/// The errors of [`super::run`].
pub(super) fn plot(args: &PlotArgs) -> Result<(), Failure> {
    let provenance = Manifest::of(&args.directory).map_err(failure)?.provenance;
    // The page shows the SVG.
    let mut formats = vec![Format::Svg];
    for format in &args.formats {
        if !formats.contains(format) {
            formats.push(*format);
        }
    }
    let drawing = if formats.len() > 1 { Some(Drawing::new()?) } else { None };
    let drawn = drawn(args, &figures::origin(&provenance))?;
    if drawn.is_empty() {
        let why = format!("{}: the results have nothing to draw", args.directory.display());
        return Err(Failure::failed(why));
    }
    let out = args.out.clone().unwrap_or_else(|| args.directory.join("figures"));
    fs::create_dir_all(&out)
        .map_err(|error| Failure::failed(format!("{}: cannot be made: {error}", out.display())))?;
    let mut files = Vec::new();
    for (name, svg) in &drawn {
        files.extend(save(&out, name, svg, (&formats, drawing.as_ref()))?);
    }
    let page = out.join(index::INDEX);
    index::write(&out, &figures::origin(&provenance)).map_err(|error| {
        Failure::failed(format!("{}: cannot be written: {error}", page.display()))
    })?;
    if args.json {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        return output::print_json(&names);
    }
    let count = format::counted(drawn.len() as u64, "figure");
    output::print(&format!("{count} in {}; open {}\n", out.display(), page.display()))
}

/// All figures that `args` ask for, as SVG under their names, with `origin` at the end of their captions.
fn drawn(args: &PlotArgs, origin: &str) -> Result<Vec<(String, String)>, Failure> {
    // A map needs all metrics that it is made of.
    let is_map = |metric: &str| figures::MOVEMENT.contains(&metric);
    let asks_map = args.metrics.iter().any(|metric| is_map(metric));
    let wanted = |metric: &str| {
        let asked = args.metrics.is_empty() || args.metrics.iter().any(|m| m == metric);
        asked || (asks_map && is_map(metric))
    };
    let (points, scalars) = read(&args.directory, tables::SCALARS, &wanted)?;
    let (_, series) = read(&args.directory, tables::SERIES, &wanted)?;
    let (_, samples) = read(&args.directory, tables::SAMPLES, &wanted)?;
    let all = [&scalars, &series, &samples];
    if let Some(missing) = args.metrics.iter().find(|m| !all.iter().any(|data| data.has(m))) {
        return Err(unknown(&args.directory, missing));
    }
    let sweep = Sweep::new(&points, args.x.as_deref()).map_err(Failure::usage)?;
    let asked = !args.metrics.is_empty();
    let mut figures = if asked { Vec::new() } else { own(&args.directory)? };
    figures.extend(figures::scalars(&scalars, &sweep, asked));
    figures.extend(figures::series(&series, &sweep));
    figures.extend(figures::shares(&series, &sweep));
    figures.extend(figures::distributions(&samples, &sweep));
    let caption = |own: &str| format!("{own} {origin}").trim().to_owned();
    let figure = |(name, figure): (String, Figure)| {
        (name, Figure { caption: caption(&figure.caption), ..figure }.to_svg())
    };
    let map =
        |(name, map): (String, Map)| (name, Map { caption: caption(&map.caption), ..map }.to_svg());
    let maps = figures::movement(&series, &sweep).into_iter().map(map);
    Ok(figures.into_iter().map(figure).chain(maps).collect())
}

/// The figures that the scenario itself describes; none if this build cannot read it or runs others.
fn own(directory: &Path) -> Result<Vec<(String, Figure)>, Failure> {
    let Ok(sweep) = anabranch_results::Sweep::of(directory) else { return Ok(Vec::new()) };
    let scenario = sweep.scenario();
    let mut runs = Vec::new();
    for point in 0..scenario.points().len() {
        let kept = |seed: &u64| {
            let id = RunId { point, seed: *seed };
            anabranch_results::load(directory, &sweep, id).map_err(failure).transpose()
        };
        runs.push(sweep.seeds().iter().filter_map(kept).collect::<Result<Vec<_>, _>>()?);
    }
    let drawings = scenario.draw(&runs).into_iter().enumerate();
    let drawn = drawings.filter(|(_, drawing)| drawing.curves.iter().any(|c| !c.points.is_empty()));
    let named = drawn.map(|(index, drawing)| {
        (format!("figure-{}", index + 1), anabranch_repro::figure::Figure::from(drawing).plotted())
    });
    Ok(named.collect())
}

/// Reads a table's rows of the metrics wanted.
fn read(
    directory: &Path,
    name: &str,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<(Points, Data), Failure> {
    let mut data = Data::default();
    let mut visit = |row: &Row<'_>| {
        if wanted(row.metric) {
            data.add(row);
        }
    };
    let points = tables::read(directory, name, &mut visit).map_err(|error| match error {
        ResultsError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            let path = directory.display();
            Failure::failed(format!("{path}: {name} is missing: the run is not finished"))
        }
        error => failure(error),
    })?;
    Ok((points, data))
}

fn unknown(directory: &Path, metric: &str) -> Failure {
    let mut known: Vec<String> = Vec::new();
    for name in [tables::SCALARS, tables::SERIES, tables::SAMPLES] {
        let mut visit = |row: &Row<'_>| {
            if !known.iter().any(|known| known == row.metric) {
                known.push(row.metric.to_owned());
            }
        };
        // A table that cannot be read was reported by `read`.
        let _ = tables::read(directory, name, &mut visit);
    }
    known.sort();
    Failure::usage(format!("there is no metric '{metric}'; there are: {}", known.join(", ")))
}

/// Writes a figure in each of `formats`; returns the files.
fn save(
    out: &Path,
    name: &str,
    svg: &str,
    (formats, drawing): (&[Format], Option<&Drawing>),
) -> Result<Vec<PathBuf>, Failure> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let mut files = Vec::new();
    for format in formats {
        let path = out.join(format!("{name}.{}", format.extension()));
        let failed = |why: String| Failure::failed(format!("{}: cannot be {why}", path.display()));
        let bytes = match drawing {
            Some(drawing) => {
                drawing.draw(svg, *format).map_err(|why| failed(format!("drawn: {why}")))?
            }
            None => svg.as_bytes().to_vec(),
        };
        anabranch_files::write(&path, &bytes, 0o666)
            .map_err(|error| failed(format!("written: {error}")))?;
        files.push(path);
    }
    Ok(files)
}
