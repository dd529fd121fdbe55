//! Stacked bars in SVG: parts of a whole, one bar below the other.

use super::figure::{COLORS, Svg, broken};

const WIDTH: f64 = 920.0;
/// Where bars begin, after their names, and end.
const LEFT: f64 = 360.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 52.0;
/// Of a bar with the space below it.
const ROW: f64 = 26.0;
const BAR: f64 = 18.0;
const LINE_HEIGHT: f64 = 20.0;

/// One bar.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// To its left.
    pub name: String,
    /// Its parts in percent, in the order of [`Bars::parts`].
    pub parts: Vec<f64>,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Debug)]
pub struct Bars {
    /// Above all.
    pub title: String,
    /// The names of the parts, at most seven.
    pub parts: Vec<String>,
    /// From top to bottom.
    pub bars: Vec<Bar>,
    /// Below: what was run.
    pub notes: Vec<String>,
}

impl Bars {
    /// The chart as the text of an SVG file.
    pub fn svg(&self) -> String {
        let notes = broken(&self.notes, WIDTH);
        let legend_top = TOP + ROW * self.bars.len() as f64 + 22.0;
        let notes_top = legend_top + 2.0 * LINE_HEIGHT;
        let height = notes_top + LINE_HEIGHT * notes.len() as f64 + 12.0;
        let mut out = Svg(String::new());
        out.line(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {WIDTH:.0} {height:.0}\" font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\" font-size=\"12\">"
        ));
        out.line(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"));
        out.text((WIDTH / 2.0, 28.0), "middle", "font-size=\"17\" font-weight=\"bold\"", &self.title);
        for (place, bar) in self.bars.iter().enumerate() {
            bar.draw(TOP + ROW * place as f64, &mut out);
        }
        for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
            out.text((at(percent), legend_top - 8.0), "middle", "", &format!("{percent} %"));
        }
        for (number, name) in self.parts.iter().enumerate() {
            let x = 24.0 + (WIDTH - 48.0) / self.parts.len() as f64 * number as f64;
            let y = legend_top + LINE_HEIGHT;
            rectangle(&mut out, (x, y - 10.0), (12.0, 12.0), number);
            out.text((x + 18.0, y), "start", "", name);
        }
        for (line, note) in notes.iter().enumerate() {
            let y = notes_top + LINE_HEIGHT * (line as f64 + 0.7);
            out.text((24.0, y), "start", "fill=\"#555555\"", note);
        }
        out.line(format_args!("</svg>"));
        out.0
    }
}

impl Bar {
    fn draw(&self, top: f64, out: &mut Svg) {
        out.text((LEFT - 10.0, top + 13.0), "end", "", &self.name);
        let mut from = 0.0;
        for (number, part) in self.parts.iter().enumerate() {
            let part = part.max(0.0);
            rectangle(out, (at(from), top), (at(part) - LEFT, BAR), number);
            from += part;
        }
    }
}

/// Where a percentage lies.
fn at(percent: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * percent / 100.0
}

fn rectangle(out: &mut Svg, (x, y): (f64, f64), (width, height): (f64, f64), number: usize) {
    let color = COLORS[number % COLORS.len()];
    out.line(format_args!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"/>"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_side_by_side() {
        let bars = Bars {
            title: "Time".to_owned(),
            parts: vec!["work".to_owned(), "rest".to_owned()],
            bars: vec![Bar { name: "a < b".to_owned(), parts: vec![25.0, 75.0] }],
            notes: vec!["A note".to_owned()],
        };
        let svg = bars.svg();
        let width = WIDTH - LEFT - RIGHT;
        let first =
            format!("<rect x=\"{LEFT:.1}\" y=\"{TOP:.1}\" width=\"{:.1}\" height=\"{BAR:.1}\"", width / 4.0);
        let second = format!("<rect x=\"{:.1}\" y=\"{TOP:.1}\"", LEFT + width / 4.0);
        assert!(svg.contains(&first) && svg.contains(&second), "{svg}");
        assert!(svg.contains("a &lt; b") && svg.contains("rest") && svg.contains("A note"));
    }
}
