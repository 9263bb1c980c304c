//! Figures in other formats than SVG.

use clap::ValueEnum;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, Node};
use svg2pdf::{ConversionOptions, PageOptions};

use crate::failure::Failure;

/// Pixels of a PNG for each pixel of the SVG, in each direction.
const SCALE: f32 = 2.0;
/// Replacements for fonts that figures name and the machine lacks. The first that exists is used.
const SIMILAR: [&str; 8] = [
    "Liberation Sans",
    "DejaVu Sans",
    "Noto Sans",
    "Open Sans",
    "Roboto",
    "Cantarell",
    "Ubuntu",
    "FreeSans",
];

/// File format of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines and texts, for pages and for changes by hand
    Svg,
    /// Pixels, for slides and messages: two for each of the SVG
    Png,
    /// Lines and texts, for LaTeX
    Pdf,
}

impl Format {
    /// File name extension of the format.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Format::Svg => "svg",
            Format::Png => "png",
            Format::Pdf => "pdf",
        }
    }
}

/// Draws SVG with the fonts of this machine.
pub(super) struct Drawing {
    options: usvg::Options<'static>,
}

impl Drawing {
    /// Loads the fonts of the system.
    ///
    /// # Errors
    /// If there are none.
    pub(super) fn new() -> Result<Self, Failure> {
        let mut options = usvg::Options::default();
        options.fontdb_mut().load_system_fonts();
        Drawing { options }.prepared()
    }

    /// Sets the font to use when none of those that a figure names is installed.
    fn prepared(mut self) -> Result<Self, Failure> {
        let fonts = self.options.fontdb_mut();
        let mut families: Vec<String> = Vec::new();
        for face in fonts.faces() {
            families.extend(face.families.iter().map(|(family, _)| family.clone()));
        }
        let similar = SIMILAR.iter().find(|name| families.iter().any(|family| family == *name));
        let family = similar.map(|name| (*name).to_owned()).or(families.into_iter().next());
        let Some(family) = family else {
            return Err(Failure::failed(
                "this machine has no fonts, which PNG and PDF need: install some, such as the package \
                 fonts-dejavu-core, or take --format svg",
            ));
        };
        fonts.set_sans_serif_family(family);
        Ok(self)
    }

    /// A figure as it is written in `format`.
    ///
    /// # Errors
    /// The reason in words, if the figure cannot be drawn.
    pub(super) fn draw(&self, svg: &str, format: Format) -> Result<Vec<u8>, String> {
        match format {
            Format::Svg => Ok(svg.as_bytes().to_vec()),
            Format::Png => self.png(&self.tree(svg)?),
            Format::Pdf => {
                let tree = self.tree(svg)?;
                svg2pdf::to_pdf(&tree, ConversionOptions::default(), PageOptions::default())
                    .map_err(|error| error.to_string())
            }
        }
    }

    fn tree(&self, svg: &str) -> Result<usvg::Tree, String> {
        let tree = usvg::Tree::from_str(svg, &self.options).map_err(|error| error.to_string())?;
        // Texts for which there is no font are silently left out.
        if texts(tree.root()) < svg.matches("<text ").count() {
            return Err(
                "no installed font has its letters: install fonts-dejavu-core, or use --format svg"
                    .to_owned(),
            );
        }
        Ok(tree)
    }

    fn png(&self, tree: &usvg::Tree) -> Result<Vec<u8>, String> {
        let size = tree.size().to_int_size().scale_by(SCALE).ok_or("it has no size")?;
        let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("it is too large")?;
        resvg::render(tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}

/// How many texts there are, those in groups too.
fn texts(group: &usvg::Group) -> usize {
    let of = |node: &Node| match node {
        Node::Text(_) => 1,
        Node::Group(group) => texts(group),
        _ => 0,
    };
    group.children().iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"100\" \
        font-family=\"Nosuch, sans-serif\"><rect width=\"200\" height=\"100\" fill=\"#fff\"/>\
        <text x=\"10\" y=\"60\" font-size=\"40\" fill=\"#000\">Text</text></svg>";

    #[test]
    fn without_fonts_it_is_said_what_to_do() {
        let bare = Drawing { options: usvg::Options::default() };
        let why = bare.tree(SVG).unwrap_err();
        assert!(why.contains("--format svg"), "{why}");
        let failure = bare.prepared().err().unwrap().to_string();
        assert!(failure.contains("fonts-dejavu-core"), "{failure}");
    }

    /// Where a font that a figure names is missing, its texts are drawn with another.
    #[test]
    fn texts_are_drawn() {
        let Ok(drawing) = Drawing::new() else {
            println!("skipped: this machine has no fonts");
            return;
        };
        let png = drawing.draw(SVG, Format::Png).unwrap();
        let pixels = Pixmap::decode_png(&png).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (400, 200));
        let dark = pixels.pixels().iter().filter(|pixel| pixel.red() < 50).count();
        assert!((500..20_000).contains(&dark), "{dark}");
        let pdf = drawing.draw(SVG, Format::Pdf).unwrap();
        assert!(pdf.starts_with(b"%PDF-") && pdf.windows(5).any(|it| it == b"/Font"));
        assert_eq!(drawing.draw(SVG, Format::Svg).unwrap(), SVG.as_bytes());
        assert!(drawing.draw("<svg", Format::Pdf).is_err());
    }
}
